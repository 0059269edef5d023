"""What a .qpx bundle's parts have to be, judged without the file: JSON, fields, encodings, roles, names.

Written from the format's specification alone; numbers like "4.5" are its rules. `second_reader` is the program.
"""

import json
import re
from math import prod

import numpy as np

PAGE, WHOLE, VALUES = 16384, 2**53 - 1, 1 << 20
SEGMENTS = ("attached", "core", "head", "experts", "draft", "rows", "kept")
PARTS = ("gate", "up", "down")
CONTROL = "\x00-\x1f\x7f-\x9f"  # Unicode's category Cc, inside a pattern's brackets


class Fault(Exception):
    """A broken rule: its number, the place, and what is wrong there."""

    def __init__(self, rule, place, message, newer=False):
        super().__init__(f"rule {rule} {'newer than this reader' if newer else 'broken'}: {place}: {message}")
        self.rule, self.place, self.message, self.newer = rule, place, message, newer


class NotFound(Exception):
    """A role or a name that the bundle does not have."""


def need(holds, rule, place, message):
    if not holds:
        raise Fault(rule, place, message)


def up(number, step):
    return -(-number // step) * step


def shown(text, limit=1100):
    """Text from a file, safe for a terminal."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text[:limit]) + "…" * (len(text) > limit)


def is_count(value):
    return type(value) is int and value >= 0


# ---------------------------------------------------------------- JSON and fields (chapter 3)


def extent_of(data):
    """Deepest nesting of JSON text and its number of values, found without recursion or building them."""
    flat = np.frombuffer(data.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    outside = (np.cumsum(flat == 0x22, dtype=np.uint8) & 1) == 0  # a text's closing quote counts as outside
    flat = flat[outside & (flat != 0x20) & (flat != 0x09) & (flat != 0x0A) & (flat != 0x0D)]
    opened, closed = (flat | 0x20) == 0x7B, (flat | 0x20) == 0x7D  # [ and {, ] and }
    depth = int(np.cumsum(opened.astype(np.int8) - closed, dtype=np.int32).max(initial=0))
    filled = np.count_nonzero(opened[:-1] & ~closed[1:])  # an array or object has one value more than commas, or none
    return depth, 1 + int(filled) + int(np.count_nonzero(flat == 0x2C))


def parse_json(data, place):
    """One JSON value that keeps rules 3.1 to 3.3."""

    def number(text):
        value = float(text)
        need(abs(value) <= WHOLE, "3.3", place, f"the number {text[:40]} is too large")
        return value if re.search("[.eE]", text) or text == "-0" else int(text)  # minus zero is no count

    def constant(text):
        raise Fault("3.1", place, f"{text} is not JSON")

    def pairs(found):
        made = dict(found)
        need(len(made) == len(found), "3.2", place, f"a key stands twice among {shown(', '.join(made), 200)}")
        return made

    depth, values = extent_of(data)
    need(depth <= 64, "3.3", place, "nests more than 64 deep")
    need(values <= VALUES, "3.3", place, f"has {values} values, at most {VALUES} are allowed")
    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_int=number, parse_float=number, parse_constant=constant, object_pairs_hook=pairs)
        if re.search(r"\\u[dD][89a-fA-F]", text):  # half of a surrogate pair has no UTF-8
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except ValueError as error:
        raise Fault("3.1", place, f"is no JSON in UTF-8: {shown(str(error), 100)}") from None
    return value


# Types of fields: "text", "count", a tuple of words, a list of one type, an object. In an object, "?" behind a key
# means "or null or absent", and "*" stands for any key (None: of any type).
CENSUS = {"tensors": "count", "weights": "count", "bytes": "count"}
SOURCE = {"name": "text", "dtype": "text", "start": "count", "stride": "count"}
PURPOSES = ("tokenizer", "config", "generation_config", "chat_template", "licence", "card", "source_header",
            "source_index", "other")
CHECKED = {
    "architecture": {"*": None},
    "parameters": {"total": "count", "active": "count"},
    "census": {"*": CENSUS},
    "segments": [{"kind": SEGMENTS, "offset": "count", "length": "count", "leaf_bytes": "count"}],
    "attached": [{"name": "text", "purpose": PURPOSES, "offset": "count", "stored": "count", "length": "count",
                  "compression": ("none", "zstd")}],
    "tensors": [{"role": "text", "encoding": "text", "shape": ["count"], "segment": "text", "offset": "count",
                 "length": "count", "source": SOURCE}],
    "experts": [{"layer": "count", "part": PARTS, "segment": ("experts", "draft"), "encoding": "text",
                 "shape": ["count"], "base": "count", "stride": "count", "count": "count", "length": "count",
                 "source": SOURCE}],
    "aliases": [{"role": "text", "of": "text", "source?": SOURCE}],
}
ORIGIN = {
    "stated?": "text",
    "files": [{"name": "text", "size": "count", "sha256?": "text", "became": ("weights", "attached", "left_out")}],
    "dropped": [{"name": "text", "bytes": "count", "reason": "text"}],
}
CLAIMED = {"tool": {"name": "text", "version": "text"}, "origin": ORIGIN, "licence?": "text",
           "recipe": {"name": "text", "text": "text"}}
MANIFEST = {"requires": ["text"], "checked": CHECKED, "claimed": CLAIMED}


def check_fields(value, kind, place, strict):
    """Rules 3.4 and 3.5: `value` has the type `kind`; with `strict`, objects have no further keys."""
    if kind == "text":
        need(isinstance(value, str), "3.4", place, "must be text")
    elif kind == "count":
        need(is_count(value), "3.4", place, "must be a whole number from 0, without sign, fraction or exponent")
    elif isinstance(kind, tuple):
        need(isinstance(value, str) and value in kind, "3.4", place, "must be one of " + ", ".join(kind))
    elif isinstance(kind, list):
        need(isinstance(value, list), "3.4", place, "must be a list")
        for number, entry in enumerate(value):
            check_fields(entry, kind[0], f"{place}[{number}]", strict)
    elif kind is not None:
        need(isinstance(value, dict), "3.4", place, "must be an object")
        for key in kind:
            need(key[-1] in "?*" or key in value, "3.4", place, f"'{key}' is missing")
        for key, entry in value.items():
            known = "*" if "*" in kind else key + "?" if key + "?" in kind else key if key[-1:] != "?" else None
            known = known if known in kind else None
            need(known or not strict, "3.5", place, f"unknown key '{shown(key, 80)}'")
            if known and not (known == key + "?" and entry is None):
                check_fields(entry, kind[known], f"{place}.{shown(key, 80)}", strict)


# ---------------------------------------------------------------- encodings (chapter 5)


def f32(array):
    return array.astype("<f4")


def half(blocks, at):
    """The binary16 at byte `at` of every block, as a column of binary32."""
    return f32(np.ascontiguousarray(blocks[:, at:at + 2]).view("<f2"))


def fields(octets, width, *shape):
    """The last axis cut into bit fields: all lowest `width` bits, then all next ones, and so on; then given a shape."""
    shifts = np.arange(0, 8, width, dtype=np.uint8)[:, None]
    return ((octets[..., None, :] >> shifts) & (2**width - 1)).reshape(-1, *shape)


def scaled(factor, q):
    """factor[g] · q[g] for each group g of each block."""
    return factor[:, :, None] * f32(q).reshape(*factor.shape, -1)


def q5_1(b):
    q = fields(b[:, 8:], 4, 32) + 16 * np.unpackbits(b[:, 4:8], axis=1, bitorder="little")
    return half(b, 0) * f32(q) + half(b, 2)


def q6_k(b):
    q = fields(b[:, :128].reshape(-1, 2, 64), 4, 256) | fields(b[:, 128:192].reshape(-1, 2, 32), 2, 256) << 4
    return scaled(half(b, 208) * f32(b[:, 192:208].view("i1")), q.astype(np.int8) - np.int8(32))


def q45_k(b, q):
    """q4_k and q5_k: eight scales and minimums of six bits."""
    low, high = b[:, 4:12], b[:, 12:16]
    scale = np.concatenate([low[:, :4] & 63, (high & 15) + 16 * (low[:, :4] >> 6)], axis=1)
    minimum = np.concatenate([low[:, 4:] & 63, (high >> 4) + 16 * (low[:, 4:] >> 6)], axis=1)
    return scaled(half(b, 0) * f32(scale), q) - (half(b, 2) * f32(minimum))[:, :, None]


def q4_k(b):
    return q45_k(b, fields(b[:, 16:].reshape(-1, 4, 32), 4, 256))


def q5_k(b):
    return q45_k(b, fields(b[:, 48:].reshape(-1, 4, 32), 4, 256) + 16 * fields(b[:, 16:48], 1, 256))


def q3_k(b):
    scale = (fields(b[:, 96:104], 4, 16) + 16 * fields(b[:, 104:108], 2, 16)).astype(np.int8) - np.int8(32)
    q = fields(b[:, 32:96].reshape(-1, 2, 32), 2, 256) + 4 * fields(b[:, :32], 1, 256)
    return scaled(half(b, 108) * f32(scale), q.astype(np.int8) - np.int8(4))


def q2_k(b):
    q = fields(b[:, 16:80].reshape(-1, 2, 32), 2, 256)
    return scaled(half(b, 80) * f32(b[:, :16] & 15), q) - (half(b, 82) * f32(b[:, :16] >> 4))[:, :, None]


def f8_e4m3_values():
    code = np.arange(256)
    sign, exponent, fraction = np.where(code & 128, -1.0, 1.0), code >> 3 & 15, code & 7
    value = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
    return f32(np.where((code & 127) == 127, np.nan, sign * value))


F8_E4M3 = f8_e4m3_values()
F8_E8M0 = np.array([1 << 22, *(code << 23 for code in range(1, 255)), 0x7FC00000], "<u4").view("<f4")

# name: (values of a block, bytes of a block, numpy dtype of the values, decoder of an array [blocks, bytes])
ENCODINGS = {
    "f16": (1, 2, "<f4", lambda b: f32(b.view("<f2"))),
    "bf16": (1, 2, "<f4", lambda b: (b.view("<u2").astype("<u4") << 16).view("<f4")),
    "f8_e4m3": (1, 1, "<f4", lambda b: F8_E4M3[b]),
    "f8_e5m2": (1, 1, "<f4", lambda b: f32((b.astype("<u2") << 8).view("<f2"))),
    "f8_e8m0": (1, 1, "<f4", lambda b: F8_E8M0[b]),
    "q8_0": (32, 34, "<f4", lambda b: f32(b[:, 2:].view("i1")) * half(b, 0)),
    "q4_1": (32, 20, "<f4", lambda b: half(b, 0) * f32(fields(b[:, 4:], 4, 32)) + half(b, 2)),
    "q5_1": (32, 24, "<f4", q5_1), "q6_k": (256, 210, "<f4", q6_k), "q5_k": (256, 176, "<f4", q5_k),
    "q4_k": (256, 144, "<f4", q4_k), "q3_k": (256, 110, "<f4", q3_k), "q2_k": (256, 84, "<f4", q2_k),
}
for name, dtype in {"bool": "|b1", "u8": "|u1", "i8": "|i1", "u16": "<u2", "i16": "<i2", "u32": "<u4", "i32": "<i4",
                    "u64": "<u8", "i64": "<i8", "f32": "<f4", "f64": "<f8", "c64": "<c8"}.items():
    ENCODINGS[name] = (1, np.dtype(dtype).itemsize, dtype, lambda b, dtype=dtype: b.view(dtype))


def decode(encoding, data):
    """The values of whole blocks, in one row, those beyond a row's end included; a computed NaN is 7fc00000."""
    _, size, dtype, decoder = ENCODINGS[encoding]
    with np.errstate(all="ignore"):
        values = decoder(np.frombuffer(data, np.uint8).reshape(-1, size)).reshape(-1)
    if dtype == "<f4" and encoding not in ("f32", "bf16"):
        values[np.isnan(values)] = np.nan
    return values


# ---------------------------------------------------------------- single entries (chapters 3, 5, 6, 7)

WORD, NUMBER = "[a-z][a-z0-9_]*", "(?:0|[1-9][0-9]{0,8})"
REST = rf"(?:\.(?:{WORD}|{NUMBER}))*"
ROLE = re.compile(rf"kept\.[^{CONTROL}]+|(?:layer|draft)\.{NUMBER}\.{WORD}{REST}"
                  rf"|(?!(?:kept|layer|draft)(?![a-z0-9_])){WORD}{REST}")
EXPERT_ROLE = re.compile(rf"((?:layer|draft)\.{NUMBER})\.expert\.({NUMBER})\.(gate|up|down)")


def is_role(role):
    return len(role.encode()) <= 1100 and ROLE.fullmatch(role) is not None


def is_safe(name):
    """Rule 7.1."""
    plain = 1 <= len(name.encode()) <= 1024 and not re.search(rf'[{CONTROL}\\:*?"<>|]', name)
    return plain and all(1 <= len(part.encode()) <= 255 and part[-1] not in ". " for part in name.split("/"))


def check_shape(entry, place):
    """Rules 5.1 to 5.4 for a tensor or an expert row."""
    need(entry["encoding"] in ENCODINGS, "5.1", place, f"unknown encoding '{shown(entry['encoding'], 80)}'")
    (block, size, _, _), shape = ENCODINGS[entry["encoding"]], entry["shape"]
    need(len(shape) <= 8, "5.2", place, f"{len(shape)} dimensions, at most 8 are allowed")
    solid = [1] + [max(1, dimension) for dimension in shape]
    largest = max(prod(solid), prod(solid[:-1]) * up(solid[-1], block) // block * size)
    need(largest <= WHOLE, "5.2", place, "more values or bytes than 2^53 - 1")
    need(block == 1 or len(shape) >= 2, "5.4", place, f"{entry['encoding']} needs two dimensions")
    length = prod(shape[:-1]) * up(shape[-1] if shape else 1, block) // block * size
    need(entry["length"] == length, "5.3", place, f"length is {entry['length']}, shape and encoding make {length}")


def check_source(source, place, expert=False):
    """Rule 3.12."""
    name, dtype, stride = source["name"], source["dtype"], source["stride"]
    need(1 <= len(name.encode()) <= 1024 and not re.search(f"[{CONTROL}]", name), "3.12", place,
         "the source's name is empty, too long or has a control character")
    need(re.fullmatch("[A-Z0-9_]{1,32}", dtype), "3.12", place, "the source's dtype is not 1 to 32 of A-Z 0-9 _")
    need((stride == 0) == ("{expert}" in name or not expert), "3.12", place, f"the source's stride is {stride}")


def check_role(tensor, place):
    """Rules 6.1, 6.3 and 6.5."""
    need(is_role(tensor["role"]), "6.1", place, "is no role")
    words, segment = tensor["role"].split("."), tensor["segment"]
    fit = {"kept": ("kept",), "draft": ("draft",), "embedding": ("head",), "output": ("head",)}
    need(segment in fit.get(words[0], ("core", "rows")), "6.3", place, f"does not belong in '{shown(segment, 80)}'")
    need(words[0] not in ("layer", "draft") or words[2] != "expert", "6.3", place, "experts are written as rows")
    need(words[0] != "kept" or tensor["role"] == "kept." + tensor["source"]["name"], "6.5", place,
         "is not 'kept.' and its source's name")
