#!/usr/bin/env python3
"""A reader of .qpx bundles, written from the format's specification alone.

    second_reader.py list     BUNDLE                 what the bundle holds
    second_reader.py verify   BUNDLE                 every rule, every digest, all padding, all stamps
    second_reader.py digests  BUNDLE                 a JSON line for each stored extent, BLAKE3 of its values
    second_reader.py tensor   BUNDLE ROLE -o OUT.npy
    second_reader.py attached BUNDLE NAME -o FILE

As a module: Bundle(path).tensor(role) gives a numpy array. Numbers like "4.5" are rules of the specification.
Exit codes: 0 all is well, 1 a rule is broken, 2 wrong usage or no such role or file, 3 the bundle is newer
than this reader, 4 the file cannot be read or written.
"""

import argparse
import json
import os
import re
import stat
import struct
import sys
from dataclasses import dataclass
from math import prod

import numpy as np
import zstandard
from blake3 import blake3

from second_rules import (CENSUS, ENCODINGS, EXPERT_ROLE, MANIFEST, PAGE, PARTS, SEGMENTS, WHOLE, WORD, Fault, NotFound,
                          check_fields, check_role, check_shape, check_source, decode, is_count, is_role, is_safe, need,
                          parse_json, shown, up)

MAGIC, STAMP_MAGIC, ZSTD_MAGIC = b"\x89QPX\r\n\x1a\n", b"QPXSTAMP", b"\x28\xb5\x2f\xfd"
STAMP_HEAD, STAMP_LIMIT, STAMP_PAYLOAD, DIGEST = 104, 65536, 16 << 20, 32
ZSTD_WINDOW = 128 << 20


@dataclass(slots=True)
class Item:
    """One stored thing: where it lies, its first leaf, and the number of its source digest (None: it has none)."""

    name: str
    offset: int
    length: int
    leaf_bytes: int
    leaf: int
    piece: int | None = None
    encoding: str = ""
    shape: tuple = ()
    dtype: str = ""

    @property
    def leaves(self):
        return up(self.length, self.leaf_bytes) // self.leaf_bytes


@dataclass(slots=True)
class Layer:
    """The expert records of one layer in one segment, made of the first record's items."""

    name: str
    rows: list
    first: list
    leaves: int  # of one record

    def item(self, expert, part):
        row, first = self.rows[part], self.first[part]
        return Item(f"{self.name}.expert.{expert}.{row['part']}", row["base"] + expert * row["stride"], row["length"],
                    first.leaf_bytes, first.leaf + expert * self.leaves, first.piece + expert * len(self.rows),
                    row["encoding"], tuple(row["shape"]), row["source"]["dtype"])

    def items(self):
        for expert in range(self.rows[0]["count"]):
            yield from (self.item(expert, part) for part in range(len(self.rows)))


class Bundle:
    """An open bundle. Opening it checks everything but the bytes of the segments and the stamps."""

    def __init__(self, path):
        self.path = os.fspath(path)
        if not stat.S_ISREG(os.stat(self.path).st_mode):
            raise OSError("is not a file")
        self.file = open(self.path, "rb", buffering=0)
        try:
            self.size = os.fstat(self.file.fileno()).st_size
            self._manifest(self._page_0())
            self._claims()
            self._entries()
            self._layout()
            self._counts()
        except BaseException:
            self.file.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def read(self, offset, length):
        """Exactly these bytes; callers have bounded `length`."""
        made = bytearray()
        while len(made) < length:
            piece = os.pread(self.file.fileno(), length - len(made), offset + len(made))
            need(piece, "2.7", f"byte {offset + len(made)}", "the file is cut short here")
            made += piece
        return bytes(made)

    def _page_0(self):
        """Chapter 2; gives the manifest's bytes."""
        page = self.read(0, min(PAGE, self.size))
        sound = len(page) == PAGE and blake3(MAGIC + page[8:16352]).digest() == page[16352:]
        need(page[:8] == MAGIC, "2.1", "bytes 0..8", "the magic was altered" if sound else "this is no bundle")
        need(len(page) == PAGE, "2.7", f"byte {self.size}", "the file ends within page 0")
        need(sound, "2.2", "bytes 0..16352", "not what the page digest says")
        major, self.minor, page_bytes, self.content, start, length = struct.unpack_from("<HHIQQQ", page, 8)
        table, table_length = struct.unpack_from("<QQ", page, 72)
        if major != 1:
            raise Fault("2.3", "bytes 8..10", f"major version {major}, this reader knows 1", newer=major > 1)
        need(page_bytes == PAGE, "2.4", "bytes 12..16", f"page bytes are {page_bytes}")
        need(not any(page[120:16352]), "2.5", "bytes 120..16352", "a reserved byte is not zero")
        need(self.content % PAGE == 0 and self.content <= WHOLE, "2.6", "bytes 16..24",
             f"content length {self.content} is no multiple of the page up to 2^53 - 1")
        need(start == PAGE, "2.8", "bytes 24..32", f"manifest offset is {start}")
        need(1 <= length <= 64 << 20, "2.8", "bytes 32..40", f"manifest length is {length}")
        need(table == up(PAGE + length, PAGE), "2.9", "bytes 72..80", f"table offset is {table}")
        need(table_length % 32 == 0 and table_length <= 256 << 20, "2.9", "bytes 80..88", f"it is {table_length}")
        self.manifest_end, self.table_end = start + length, table + table_length
        self.data_start = up(self.table_end, PAGE)
        need(self.content >= self.data_start, "2.6", "bytes 16..24", "the content ends before the digest table does")
        need(self.size >= self.content, "2.7", f"byte {self.size}", f"cut short; the content has {self.content} bytes")
        manifest, self.table = self.read(start, length), self.read(table, table_length)
        need(blake3(manifest).digest() == page[40:72], "2.10", "manifest", "is not what its digest says")
        need(blake3(self.table).digest() == page[88:120], "2.11", "digest table", "is not what its digest says")
        self.id = blake3(page).digest()
        return manifest

    def _manifest(self, data):
        """Rules 3.1 to 3.6."""
        tree = parse_json(data, "manifest")
        need(isinstance(tree, dict), "3.1", "manifest", "is not an object")
        required = tree.get("requires")
        unknown = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        if unknown:
            names = ", ".join(shown(name, 80) for name in unknown)
            raise Fault("3.6", "requires", f"needs features that this reader lacks: {names}", newer=True)
        check_fields(tree, MANIFEST, "manifest", self.minor == 0)
        self.checked, self.claimed = tree["checked"], tree["claimed"]
        self.attached, self.tensors, self.experts = (self.checked[key] for key in ("attached", "tensors", "experts"))

    def _claims(self):
        """Rules 3.7, 3.10 and 3.11."""
        family = self.checked["architecture"].get("family")
        need(isinstance(family, str) and len(family) <= 64 and re.fullmatch(WORD, family), "3.7",
             "architecture.family", "is missing or no word of at most 64 bytes")
        self.per_token = self.checked["architecture"].get("experts_per_token")
        if any(segment["kind"] == "experts" for segment in self.checked["segments"]):
            most = min((row["count"] for row in self.experts if row["segment"] == "experts"), default=WHOLE)
            need(is_count(self.per_token) and 1 <= self.per_token <= most, "3.7", "architecture.experts_per_token",
                 f"is no whole number from 1 to {most}")
        before = b""
        for number, file in enumerate(self.claimed["origin"]["files"]):
            place, digest = f"claimed.origin.files[{number}]", file.get("sha256")
            need(file["became"] == "left_out" if digest is None else re.fullmatch("[0-9a-f]{64}", digest), "3.10",
                 place, "'sha256' is missing or not 64 lower-case hex digits")
            need(is_safe(file["name"]), "3.11", place, f"'{shown(file['name'])}' is not a safe name")
            need(file["name"].encode() > before, "3.11", place, "names do not ascend")
            before = file["name"].encode()

    def _entries(self):
        """Each entry by itself, and roles and names among each other."""
        roles, self.alias_of, names = set(), {}, set()
        for number, tensor in enumerate(self.tensors):
            place = f"tensors[{number}] ({shown(tensor['role'])})"
            check_source(tensor["source"], place)
            check_shape(tensor, place)
            check_role(tensor, place)
            need(tensor["role"] not in roles, "6.2", place, "the role is given twice")
            roles.add(tensor["role"])
        for number, row in enumerate(self.experts):
            place = f"experts[{number}] (layer {row['layer']}, {row['part']})"
            check_source(row["source"], place, expert=True)
            need(len(row["shape"]) == 2 and all(row["shape"]), "5.5", place, "shape is not two dimensions above 0")
            check_shape(row, place)
            need(row["layer"] <= 999999999, "4.6", place, "the layer has more than 9 digits")
        for number, alias in enumerate(self.checked["aliases"]):
            role, of, place = alias["role"], alias["of"], f"aliases[{number}] ({shown(alias['role'])})"
            if alias.get("source") is not None:
                check_source(alias["source"], place)
            words = role.split(".")
            expert = words[0] in ("layer", "draft") and words[2:3] == ["expert"]
            need(is_role(role) and words[0] != "kept" and not expert, "6.4", place, "is no alias's role")
            need(of in roles, "6.4", place, f"there is no tensor '{shown(of)}'")
            need(role not in roles and role not in self.alias_of, "6.2", place, "the role is given twice")
            self.alias_of[role] = of
        for number, file in enumerate(self.attached):
            place, key = f"attached[{number}]", re.sub("[A-Z]", lambda found: found[0].lower(), file["name"])
            need(is_safe(file["name"]), "7.1", place, f"'{shown(file['name'])}' is not a safe name")
            need(max(file["stored"], file["length"]) <= 1 << 30, "7.3", place, "is larger than 1 GiB")
            need(file["compression"] != "none" or file["stored"] == file["length"], "7.3", place,
                 "'stored' and 'length' differ without compression")
            need(key not in names, "7.2", place, f"'{shown(file['name'])}' stands twice")
            names.add(key)
        for key in names:
            folders = (key[:found.start()] for found in re.finditer("/", key))
            need(names.isdisjoint(folders), "7.2", "attached", f"a folder of '{shown(key)}' is a file")

    # ------------------------------------------------ where everything lies (chapter 4)

    def _layout(self):
        """Rules 4.1 to 4.7, 4.9 and 4.10: computes every place and compares."""
        order = [SEGMENTS.index(tensor["segment"]) for tensor in self.tensors]
        need(order == sorted(order), "4.10", "tensors", "are not in the order of the segments")
        order = [(SEGMENTS.index(row["segment"]), row["layer"], PARTS.index(row["part"])) for row in self.experts]
        need(order == sorted(set(order)), "4.10", "experts", "rows are out of order or stand twice")
        kinds = [segment["kind"] for segment in self.checked["segments"]]
        held = {entry["segment"] for entry in self.tensors + self.experts} | ({"attached"} if self.attached else set())
        need(kinds == [kind for kind in SEGMENTS if kind in held], "4.1", "segments",
             f"are {kinds}, not those that hold an entry in the right order")
        self.groups = {kind: ([], []) for kind in kinds}  # items and expert layers of each segment
        self.leaves = self.pieces = 0
        start = self.data_start
        for segment in self.checked["segments"]:
            kind, leaf_bytes, place = segment["kind"], segment["leaf_bytes"], f"segment {segment['kind']}"
            need(4096 <= leaf_bytes <= 4 << 20 and leaf_bytes & (leaf_bytes - 1) == 0, "4.4", place,
                 f"leaf_bytes {leaf_bytes} is no power of two from 4096 to 4194304")
            need(segment["offset"] == start, "4.2", place, f"offset is {segment['offset']}, expected {start}")
            end = self._records(kind, leaf_bytes, self._plain_items(kind, leaf_bytes, start))
            length = up(end - start, PAGE)
            need(segment["length"] == length, "4.3", place, f"length is {segment['length']}, expected {length}")
            start += length
        need(start == self.content, "4.2", "content", f"ends at {self.content}, its last segment at {start}")
        need(len(self.table) == 32 * (self.leaves + self.pieces), "4.9", "digest table",
             f"has {len(self.table)} bytes for {self.leaves} leaves and {self.pieces} source pieces")
        tensors = (item for items, _ in self.groups.values() for item in items if item.piece is not None)
        self.by_role = {item.name: item for item in tensors}

    def _plain_items(self, kind, leaf_bytes, end):
        """Rule 4.5 for the attached files or tensors of a segment that starts at `end`; gives the last one's end."""
        for file in self.attached if kind == "attached" else ():
            self.groups[kind][0].append(Item(file["name"], file["offset"], file["stored"], leaf_bytes, self.leaves))
            self.leaves += self.groups[kind][0][-1].leaves
        for tensor in self.tensors:
            if tensor["segment"] == kind:
                item = Item(tensor["role"], tensor["offset"], tensor["length"], leaf_bytes, self.leaves, self.pieces,
                            tensor["encoding"], tuple(tensor["shape"]), tensor["source"]["dtype"])
                self.groups[kind][0].append(item)
                self.leaves, self.pieces = self.leaves + item.leaves, self.pieces + 1
        for item in self.groups[kind][0]:
            expected = up(end, 256)
            need(item.offset == expected, "4.5", shown(item.name), f"offset is {item.offset}, expected {expected}")
            end = item.offset + item.length
        return end

    def _records(self, kind, leaf_bytes, end):
        """Rule 4.6 for the expert records of one segment, which begin behind `end`; gives their end."""
        by_layer = {}
        for row in self.experts:
            if row["segment"] == kind:
                by_layer.setdefault(row["layer"], []).append(row)
        for number, rows in by_layer.items():
            start, place, within, count = up(end, PAGE), f"{kind}, layer {number}", 0, rows[0]["count"]
            need(1 <= count <= 65536, "4.6", place, f"count is {count}")
            layer, leaf = Layer(f"{'draft' if kind == 'draft' else 'layer'}.{number}", rows, [], 0), self.leaves
            for row in rows:
                base = start + up(within, 256)
                need(row["count"] == count, "4.6", place, "parts differ in 'count'")
                need(row["base"] == base, "4.6", f"{place}, {row['part']}", f"base is {row['base']}, expected {base}")
                within = base - start + row["length"]
                layer.first.append(Item("", base, row["length"], leaf_bytes, leaf + layer.leaves,
                                        self.pieces + len(layer.first)))
                layer.leaves += layer.first[-1].leaves
            stride = up(within, PAGE)
            need(all(row["stride"] == stride for row in rows), "4.6", place, f"'stride' is not {stride}")
            self.groups[kind][1].append(layer)
            self.leaves, self.pieces = leaf + count * layer.leaves, self.pieces + count * len(rows)
            end = start + count * stride
        return end

    def _counts(self):
        """Rules 3.8 and 3.9."""
        total, active, census = 0, 0, {}
        for entry in self.tensors + self.experts:
            values, times, segment = prod(entry["shape"]), entry.get("count", 1), entry["segment"]
            found = census.setdefault(entry["encoding"], dict.fromkeys(CENSUS, 0))
            for key, one in (("tensors", 1), ("weights", values), ("bytes", entry["length"])):
                found[key] += times * one
            total += times * values if segment != "kept" else 0
            if segment == "experts":
                active += values * self.per_token
            elif segment == "rows" or entry.get("role") == "embedding":
                active += entry["shape"][-1] if entry["shape"] else 1
            elif segment in ("core", "head"):
                active += values
        if "output" in self.alias_of:
            active += prod(self.by_role[self.alias_of["output"]].shape)
        stated = self.checked["parameters"]
        need((stated["total"], stated["active"]) == (total, active), "3.8", "parameters",
             f"the entries make {total}, {active} active")
        for name in census.keys() | self.checked["census"].keys():
            stated = self.checked["census"].get(name, {})
            need(name in census and all(stated.get(key) == census[name][key] for key in CENSUS), "3.9",
                 f"census.{shown(name, 80)}", f"the entries make {census.get(name)}")

    # ------------------------------------------------ items and values

    def items(self):
        """Every item in the order of the file; those without a source digest are attached files."""
        for items, layers in self.groups.values():
            yield from items
            for layer in layers:
                yield from layer.items()

    def extents(self):
        return (item for item in self.items() if item.piece is not None)

    def find(self, role):
        """The item that holds a role's bytes, an alias followed."""
        role = self.alias_of.get(role, role)
        if role in self.by_role:
            return self.by_role[role]
        match = EXPERT_ROLE.fullmatch(role)
        for layer in (layer for _, layers in self.groups.values() for layer in layers):
            parts = [row["part"] for row in layer.rows]
            if match and layer.name == match[1] and int(match[2]) < layer.rows[0]["count"] and match[3] in parts:
                return layer.item(int(match[2]), parts.index(match[3]))
        raise NotFound(f"there is no tensor '{shown(role)}'")

    def table_digest(self, number):
        return self.table[32 * number:32 * number + 32]

    def leaves_of(self, item, on_fault=None):
        """The item's bytes, leaf by leaf, each verified before it is handed out (rule 4.7)."""
        for number in range(item.leaves):
            begin = item.offset + number * item.leaf_bytes
            data = self.read(begin, min(item.leaf_bytes, item.offset + item.length - begin))
            if blake3(data).digest() != self.table_digest(item.leaf + number):
                fault = Fault("4.7", f"leaf {item.leaf + number}, bytes {begin}..{begin + len(data)}, of "
                              f"'{shown(item.name)}'", "is not what its digest says")
                if on_fault is None:
                    raise fault
                on_fault(fault)
            yield data

    def values_of(self, item):
        """The decoded values of a tensor in one-dimensional pieces, without those beyond a row's end."""
        block, size, _, _ = ENCODINGS[item.encoding]
        last = item.shape[-1] if item.shape else 1
        padded, column, rest = up(last, block), 0, b""
        for data in self.leaves_of(item):
            data = rest + data
            whole = len(data) // size * size
            rest, values = data[whole:], decode(item.encoding, data[:whole])
            if padded != last:
                columns = (column + np.arange(values.size, dtype=np.int64)) % padded
                column, values = (column + values.size) % padded, values[columns < last]
            yield values

    def tensor(self, role):
        """A role's values as an array: float32 for floats of at most 32 bits and blocks, else the stored type."""
        item, at = self.find(role), 0
        made = np.empty(prod(item.shape), ENCODINGS[item.encoding][2])
        for values in self.values_of(item):
            made[at:at + values.size] = values
            at += values.size
        return made.reshape(item.shape)

    def digest_of(self, item):
        """BLAKE3 of an item's decoded values, row by row without padding."""
        hasher = blake3()
        for values in self.values_of(item):
            hasher.update(values.tobytes())
        return hasher.hexdigest()

    def unpacked(self, file, stored):
        """An attached file's content in pieces (rule 7.4); `stored` are its verified bytes."""
        place, left, at = f"attached file '{shown(file['name'])}'", file["length"], 0
        if file["compression"] == "none":
            yield stored
            return
        try:
            need(stored[:4] == ZSTD_MAGIC, "7.4", place, "is no Zstandard frame")
            frame = zstandard.get_frame_parameters(stored[:18])
            need(frame.dict_id == 0, "7.4", place, "needs a dictionary")
            need(frame.content_size in (left, zstandard.CONTENTSIZE_UNKNOWN), "7.4", place,
                 f"states {frame.content_size} bytes, the manifest {left}")
            single = stored[4] & 0x20  # such a frame states its content size and no window
            need(single or frame.window_size <= ZSTD_WINDOW, "7.4", place,
                 f"has a window of {frame.window_size} bytes")
            most = max(ZSTD_WINDOW, left if single else 0)
            unpacker = zstandard.ZstdDecompressor(max_window_size=most).decompressobj()
            while at < len(stored) and not unpacker.eof:
                data = unpacker.decompress(stored[at:at + 1024])  # at most 32 MiB: four bytes make 128 KiB at best
                at, left = at + 1024, left - len(data)
                need(left >= 0, "7.4", place, f"unpacks to more than {file['length']} bytes")
                yield data
        except zstandard.ZstdError as error:
            raise Fault("7.4", place, f"does not unpack: {error}") from None
        need(unpacker.eof and left == 0, "7.4", place, f"is incomplete, {left} of {file['length']} bytes are missing")
        need(at >= len(stored) and not unpacker.unused_data, "7.4", place, "something stands behind its frame")

    def attached_file(self, name):
        for file, item in zip(self.attached, self.items()):
            if file["name"] == name:
                return b"".join(self.unpacked(file, b"".join(self.leaves_of(item))))
        raise NotFound(f"there is no attached file '{shown(name)}'")

    # ------------------------------------------------ stamps (chapter 8)

    def stamps(self):
        """(intact stamps, text about a record cut short or None, fault or None)."""
        found, at, before = [], self.content, bytes(32)
        while at < self.size:
            place = f"stamp {len(found)} at byte {at}"
            try:
                need(len(found) < STAMP_LIMIT, "8.2", place, f"more than {STAMP_LIMIT} stamps")
                record = self._stamp(at, before, place)
                if isinstance(record, str):
                    return found, f"{place}: {record}; ignored (8.7)", None
            except Fault as fault:
                return found, None, fault
            found.append(record)
            at, before = at + record["bytes"], record["digest"]
        return found, None, None

    def _stamp_head(self, head, before, place):
        """Rules 8.1 to 8.4 for as much of a header as is there; gives the record's bytes, the payload's length."""
        fixed = ((0, STAMP_MAGIC + b"\1" + bytes(7), "8.1", "magic, version or reserved bytes"),
                 (40, self.id, "8.3", "bundle id"), (72, before, "8.4", "previous digest"))
        for start, right, rule, what in fixed:
            need(head[start:start + len(right)] == right[:max(0, len(head) - start)], rule, place, f"wrong {what}")
        need(len(head) <= 16 or re.fullmatch(rb"[a-z][a-z0-9_]*\0*", head[16:32]), "8.1", place, "kind is no word")
        length = int.from_bytes(head[32:40], "little")
        need(length <= STAMP_PAYLOAD, "8.2", place, f"payload length is {length}")
        return STAMP_HEAD + up(length, 8) + DIGEST, length

    def _ends_in_zeros(self, at, before, place):
        """Whether rule 8.7 (a) or (d) makes all that stands from `at` on a record cut short."""
        rest = self.size - at
        if rest > STAMP_HEAD + STAMP_PAYLOAD + DIGEST:
            return False
        written = self.read(at, rest).rstrip(b"\0")
        if not written:
            return True
        if rest - len(written) < DIGEST:
            return False
        try:
            total, _ = self._stamp_head(written[:STAMP_HEAD], before, place)
        except Fault:
            return False
        return len(written) < STAMP_HEAD or total >= rest

    def _stamp(self, at, before, place):
        """The record at a place, or a text if it is one that was cut short (rule 8.7)."""
        rest = self.size - at
        try:
            head = self.read(at, min(rest, STAMP_HEAD))
            total, length = self._stamp_head(head, before, place)
            if rest < STAMP_HEAD:
                return "a header cut short"
            record, end = self.read(at, min(total, rest)), STAMP_HEAD + length
            if total > rest:
                room = rest - STAMP_HEAD - DIGEST
                for other in range(max(0, room - 7), room + 1) if room % 8 == 0 else ():
                    mended = blake3(head[:32] + struct.pack("<Q", other) + record[40:-DIGEST]).digest()
                    need(mended != record[-DIGEST:], "8.2", place, f"payload length was altered, it was {other}")
                return "a record cut short"
            need(blake3(record[:-DIGEST]).digest() == record[-DIGEST:], "8.5", place,
                 "the record is not what its digest says")
            need(not any(record[end:-DIGEST]), "8.5", place, "the padding behind the payload is not zero")
        except Fault:
            if self._ends_in_zeros(at, before, place):
                return "a record whose end is zeros"
            raise
        try:
            parse_json(record[STAMP_HEAD:end], "payload")
        except Fault as fault:
            raise Fault("8.6", place, fault) from None
        return {"kind": head[16:32].rstrip(b"\0").decode(), "offset": at, "bytes": total, "digest": record[-DIGEST:],
                "payload": record[STAMP_HEAD:end]}

    # ------------------------------------------------ full verification

    def zero_until(self, begin, end):
        """The first byte in begin..end that is not zero, or None."""
        for at in range(begin, end, 1 << 20):
            data = self.read(at, min(end - at, 1 << 20))
            if any(data):
                return at + len(data) - len(data.lstrip(b"\0"))
        return None

    def verify(self, say=print, fault=print):
        """Checks all bytes; calls `say` with what was checked and `fault` with each fault. True: all is well."""
        faults, gaps, plain, differing = [], 0, 0, []

        def report(found):
            faults.append(found)
            fault(str(found))

        def padding(begin, end):
            at = self.zero_until(begin, end)
            if at is not None:
                report(Fault("4.8", f"byte {at}", f"padding {begin}..{end} is not zero"))
            return end - begin

        files, end = iter(self.attached), self.data_start
        gaps += padding(self.manifest_end, up(self.manifest_end, PAGE)) + padding(self.table_end, end)
        for item in self.items():
            gaps += padding(end, item.offset)
            before, kept, hasher, end = len(faults), [], blake3(), item.offset + item.length
            for data in self.leaves_of(item, report):
                if item.encoding == item.dtype.lower():
                    hasher.update(data)
                if item.piece is None:
                    kept.append(data)
            if item.piece is None:
                file = next(files)
                try:
                    for _ in self.unpacked(file, b"".join(kept)) if len(faults) == before else ():
                        pass
                except Fault as found:
                    report(found)
            elif item.encoding == item.dtype.lower():
                plain += 1
                if hasher.digest() != self.table_digest(self.leaves + item.piece):
                    differing.append(shown(item.name))
        gaps += padding(end, self.content)
        say(f"leaves: {self.leaves} (4.7)")
        say(f"padding: {gaps} bytes (4.8)")
        say(f"attached files: {len(self.attached)} (7.4)")
        say(f"source digests: {self.pieces}, claims; of {plain} for bytes stored as they were, {len(differing)} differ")
        for name in differing[:20]:
            say(f"note: the source digest of '{name}' is not that of its stored bytes")
        stamps, torn, broken = self.stamps()
        say(f"stamps: {len(stamps)} intact (8.1 to 8.6)")
        if torn:
            say(f"note: {torn}")
        if broken:
            report(broken)
        return not faults


# ---------------------------------------------------------------- commands


def command_list(bundle, _):
    checked, end = bundle.checked, "offset {offset} length {length}"
    print(f"bundle     {bundle.id.hex()}\nversion    1.{bundle.minor}\ncontent    {bundle.content} bytes")
    print(f"family     {checked['architecture']['family']}")
    print("parameters {total}, {active} active".format(**checked["parameters"]))
    for pattern, entries in (
            ("segment    {kind} " + end + " leaf_bytes {leaf_bytes}", checked["segments"]),
            ("attached   {name} {purpose} {compression} " + end + " stored {stored}", bundle.attached),
            ("tensor     {role} {encoding} {shape} {segment} " + end, bundle.tensors),
            ("experts    layer {layer} {part} {encoding} {shape} {segment} count {count} offset {base} + expert * "
             "{stride} length {length}", bundle.experts),
            ("alias      {role} of {of}", checked["aliases"])):
        for entry in entries:
            print(shown(pattern.format(**entry), 4096))
    stamps, torn, fault = bundle.stamps()
    for stamp in stamps:
        print(f"stamp      {stamp['kind']} offset {stamp['offset']} payload {len(stamp['payload'])} bytes")
    for word, text in (("note", torn), ("fault", fault)):
        if text:
            print(f"{word:10} {text}")
    return 1 if fault else 0


def command_verify(bundle, _):
    print(f"bundle: {bundle.id.hex()}")
    print("page 0 (2.1 to 2.9), manifest (2.10, 3.1 to 3.12), digest table (2.11, 4.9)")
    print(f"layout: {len(bundle.groups)} segments, {len(bundle.attached)} attached files, "
          f"{len(bundle.tensors)} tensors, {len(bundle.experts)} expert rows, {len(bundle.alias_of)} aliases "
          "(4.1 to 4.7, 4.10, 5.1 to 7.3)")
    well = bundle.verify(fault=lambda text: print("fault: " + text))
    print("all is well" if well else "NOT all is well")
    return 0 if well else 1


def command_digests(bundle, _):
    for item in bundle.extents():
        print(json.dumps({"role": item.name, "encoding": item.encoding, "shape": item.shape,
                          "blake3": bundle.digest_of(item)}))
    return 0


def command_tensor(bundle, options):
    made = bundle.tensor(options.what)
    with open(options.output, "wb") as file:
        np.save(file, made, allow_pickle=False)
    return 0


def command_attached(bundle, options):
    made = bundle.attached_file(options.what)
    with open(options.output, "wb") as file:
        file.write(made)
    return 0


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("list", "verify", "digests", "tensor", "attached"):
        command = commands.add_parser(name)
        command.add_argument("bundle")
        if name in ("tensor", "attached"):
            command.add_argument("what", metavar="ROLE" if name == "tensor" else "NAME")
            command.add_argument("-o", "--output", required=True)
    options = parser.parse_args(arguments)
    sys.stdout.reconfigure(errors="backslashreplace")
    sys.stderr.reconfigure(errors="backslashreplace")
    try:
        with Bundle(options.bundle) as bundle:
            return globals()["command_" + options.command](bundle, options)
    except (Fault, NotFound, OSError, MemoryError, ValueError) as error:
        print(f"{options.bundle}: {error or 'not enough memory'}", file=sys.stderr)
        if isinstance(error, Fault):
            return 3 if error.newer else 1
        return 2 if isinstance(error, NotFound) else 4


if __name__ == "__main__":
    sys.exit(main())
