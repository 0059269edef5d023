#!/usr/bin/env python3
"""Writes tests/vectors/NAME.bin: blocks of random bytes and their values as the `gguf` package decodes them.

Usage: decode_vectors.py            (needs numpy and gguf 0.19.0)

File: u32 number of blocks; the blocks; their values as f32, all little-endian. Every NaN is written as 0x7fc00000, because its
sign and payload depend on the processor. The first blocks are ordinary, the others have odd binary16 scales.
"""
from importlib.metadata import version
from pathlib import Path
import struct

import numpy as np
from gguf import GGMLQuantizationType, dequantize

assert version("gguf") == "0.19.0", "the vectors are those of gguf 0.19.0"

# name: values, bytes, offsets of the binary16 fields
ENCODINGS = {
    "q8_0": (32, 34, [0]),
    "q4_1": (32, 20, [0, 2]),
    "q5_1": (32, 24, [0, 2]),
    "q6_k": (256, 210, [208]),
    "q5_k": (256, 176, [0, 2]),
    "q4_k": (256, 144, [0, 2]),
    "q3_k": (256, 110, [108]),
    "q2_k": (256, 84, [80, 82]),
}
# zero, both signs; the smallest subnormal; the largest subnormal, negative; the smallest normal; 1; the largest, both signs; infinity; NaN
ODD = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0x7BFF, 0xFBFF, 0x7C00, 0x7E01]

out = Path(__file__).parent.parent / "tests" / "vectors"
for name, (values, size, halves) in ENCODINGS.items():
    rng = np.random.default_rng(list(name.encode()))
    ordinary = 6
    count = ordinary + len(ODD)
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for i in range(count):
        for at in halves:
            if i < ordinary:  # 2^-9 to 2^-2, any mantissa, any sign
                bits = (int(rng.integers(6, 13)) << 10) | int(rng.integers(1024)) | (int(rng.integers(2)) << 15)
            else:
                bits = ODD[(i - ordinary + (3 if at == halves[-1] and len(halves) > 1 else 0)) % len(ODD)]
            blocks[i, at : at + 2] = np.frombuffer(struct.pack("<H", bits), np.uint8)
    with np.errstate(all="ignore"):
        decoded = dequantize(blocks, GGMLQuantizationType[name.upper()]).astype("<f4")
    assert decoded.shape == (count, values), (name, decoded.shape)
    decoded[np.isnan(decoded)] = np.frombuffer(struct.pack("<I", 0x7FC00000), "<f4")[0]
    (out / f"{name}.bin").write_bytes(struct.pack("<I", count) + blocks.tobytes() + decoded.tobytes())
    print(f"{name}: {count} blocks")
