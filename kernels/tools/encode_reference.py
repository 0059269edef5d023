#!/usr/bin/env python3
"""Compares our encoders with GGML's quantiser: RMS error and weights per second, one core each.

Usage: encode_reference.py LIBGGML_BASE_SO [--write] [--all]        (needs numpy and gguf 0.19.0)

Calls `ggml_quantize_chunk` of a built libggml-base.so (a development tool, not a dependency) without an importance matrix, and our
encoders through `cargo run --release --example encode_rows`; both results are decoded by the `gguf` package. Errors are relative:
RMS of the error over RMS of the values. Rows that are no multiple of the block are padded with zeros for GGML, and only the
real columns count for both.

--write  stores GGML's errors in tests/vectors/ggml_rms.json, which a plain `cargo test` holds our encoders to
--all    every matrix of fixtures/tiny-coder instead of a choice
"""
import ctypes
import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, dequantize

KERNELS = Path(__file__).parent.parent
TINY = KERNELS.parent / "fixtures" / "tiny-coder"
BLOCKS = {"q8_0": 32, "q4_1": 32, "q5_1": 32, "q6_k": 256, "q5_k": 256, "q4_k": 256, "q3_k": 256, "q2_k": 256}


def uniform(count, seed):
    """In (0, 1]: splitmix64, as tests/encoding_error.rs has it."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return ((z >> np.uint64(11)).astype(np.float64) + 1) * 2.0**-53


def synthetic(kind, rows, columns):
    u = uniform(4 * rows * columns, len(kind)).reshape(-1, 4)
    normal = np.sqrt(-2 * np.log(u[:, 0])) * np.cos(2 * np.pi * u[:, 1])
    values = {
        "gaussian": lambda: normal,
        "student": lambda: normal / np.sqrt(-np.log(u[:, 2] * u[:, 3]) / 2),  # four degrees of freedom
        "laplace": lambda: np.log(u[:, 0]) * np.where(u[:, 1] < 0.5, -1, 1),
    }[kind]()
    return (values * 0.02).astype(np.float32).reshape(rows, columns)


def tiny(everything):
    for shard in sorted(TINY.glob("*.safetensors")):
        if shard.name.startswith("golden"):
            continue
        data = shard.read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        for name, entry in sorted(json.loads(data[8 : 8 + length]).items()):
            if name == "__metadata__" or len(entry["shape"]) != 2:
                continue
            assert entry["dtype"] == "BF16"
            expert = name.split(".experts.")[1].split(".")[0] if ".experts." in name else "0"
            if everything or expert in ("0", "13", "31"):
                begin, end = (8 + length + at for at in entry["data_offsets"])
                words = np.frombuffer(data[begin:end], "<u2").astype(np.uint32) << 16
                yield name, words.view(np.float32).reshape(entry["shape"])


def relative_rms(blocks, kind, x):
    back = dequantize(blocks.reshape(x.shape[0], -1), kind)[:, : x.shape[1]]
    error = back.astype(np.float64) - x
    return float(np.sqrt(np.mean(error**2) / np.mean(x.astype(np.float64) ** 2)))


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + 3 * [ctypes.c_int64] + [ctypes.c_void_p]
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    subprocess.run(["cargo", "build", "-q", "--release", "-p", "qpx-kernels", "--example", "encode_rows"], cwd=KERNELS, check=True)
    ours = KERNELS.parent / "target" / "release" / "examples" / "encode_rows"

    data = {f"{kind}.{columns}": synthetic(kind, 64, columns)
            for kind in ("gaussian", "student", "laplace") for columns in (2048, 640, 128, 48, 32)}
    data |= dict(tiny("--all" in sys.argv))
    reference, summary, worse = {}, [], 0
    for name, block in BLOCKS.items():
        kind = GGMLQuantizationType[name.upper()]
        library.ggml_quantize_init(kind)
        reference[name] = {}
        print(f"\n{name:<52} GGML error  our error   ratio   GGML M/s  our M/s  times")
        for label, x in data.items():
            rows, columns = x.shape
            padded = np.zeros((rows, -(-columns // block) * block), np.float32)
            padded[:, :columns] = x
            out = np.zeros(padded.size * 2, np.uint8)
            seconds = []
            for _ in range(3):
                start = time.perf_counter()
                size = library.ggml_quantize_chunk(kind, padded.ctypes.data, out.ctypes.data, 0, rows, padded.shape[1], None)
                seconds.append(time.perf_counter() - start)
            theirs = relative_rms(out[:size], kind, x)
            reference[name][label] = float(f"{theirs:.6g}")
            run = subprocess.run([ours, name, str(columns), "avx2", "5"], input=np.ascontiguousarray(x).tobytes(), capture_output=True, check=True)
            our = relative_rms(np.frombuffer(run.stdout, np.uint8), kind, x)
            speeds = [x.size / 1e6 / s for s in (min(seconds), float(run.stderr))]
            worse += our > theirs
            summary.append((name, label, our / theirs, speeds[1] / speeds[0]))
            if "--all" not in sys.argv or our > theirs:
                print(f"  {label:<50} {theirs:10.6f} {our:10.6f} {our / theirs:7.4f} {speeds[0]:10.1f} {speeds[1]:8.1f} {speeds[1] / speeds[0]:6.1f}")
    print("\nencoding   matrices  ratio of errors: least  mean   most")
    for name in BLOCKS:
        ratios = [r for n, _, r, _ in summary if n == name]
        print(f"  {name:<8} {len(ratios):8} {min(ratios):22.4f} {np.mean(ratios):7.4f} {max(ratios):7.4f}")
    if "--write" in sys.argv:
        path = KERNELS / "tests" / "vectors" / "ggml_rms.json"
        path.write_text(json.dumps(reference, indent=1) + "\n")
    if worse:
        sys.exit(f"{worse} of ours are worse")


main()
