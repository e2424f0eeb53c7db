"""How many columns and levels the footer of a parquet or ORC file declares, read without building its schema.

Libraries build a schema by recursion, which ends the process where it nests thousands of levels. Both footers
hold their types as a flat list, so they can be counted first. Sources: parquet.thrift (Thrift's compact
protocol), orc_proto.proto (Protocol Buffers).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO


@dataclass(frozen=True)
class Shape:
    """What a footer declares.

    Attributes:
        footer: its bytes, uncompressed as far as that was found out.
        columns: the columns without children.
        levels: columns within columns, at most.
        block: the bytes of the largest compressed block that a reader unpacks; 0 when the file does not say.
    """

    footer: int
    columns: int = 0
    levels: int = 0
    block: int = 0


def parquet_shape(file: BinaryIO, size: int, most: int) -> Shape | None:
    """Return the shape of a parquet file; None for what is none.

    Args:
        most: bytes of a footer that is read.
    """
    if size < 12:
        return None
    file.seek(size - 8)
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != b"PAR1" or length > size - 8:
        return None
    if length > most:
        return Shape(length)
    file.seek(size - 8 - length)
    try:
        children = list(_Thrift(file.read(length)).children_of_schema())
    except (IndexError, ValueError):
        return None
    return Shape(length, children.count(0), _levels_in_order(children) - 1)


def orc_shape(file: BinaryIO, size: int, most: int) -> Shape | None:
    """Return the shape of an ORC file; None for what is none; see `parquet_shape`."""
    if size < 16:
        return None
    file.seek(max(size - 257, 0))
    tail = file.read(257)
    script = tail[-1 - tail[-1] : -1]
    if not script.endswith(b"ORC"):
        return None
    try:
        said = {number: value for number, value in _fields(script) if isinstance(value, int)}
        length, kind, block = said.get(1, 0), said.get(2, 0), said.get(3, 262_144 if said.get(2) else 0)
        if length + said.get(5, 0) > most or block > most:
            return Shape(length + said.get(5, 0), block=block)
        file.seek(size - 1 - len(script) - length)
        footer = _unpacked(file.read(length), kind, most)
        if footer is None or len(footer) > most:
            return Shape(length if footer is None else len(footer), block=block)
        children = [_subtypes(value) for number, value in _fields(footer) if number == 4]
    except (IndexError, ValueError, zlib.error, OSError):
        return None
    return Shape(len(footer), sum(not each for each in children), _levels_of(children) - 1, block)


def _levels_in_order(children: Sequence[int]) -> int:
    """Return the depth of a tree whose nodes are listed parent first, by their numbers of children."""
    deepest, left = 0, list[int]()
    for count in children:
        while left and not left[-1]:
            left.pop()
        if left:
            left[-1] -= 1
        left.append(count)
        deepest = max(deepest, len(left))
    return deepest


def _levels_of(children: Sequence[Sequence[int]]) -> int:
    """Return the depth of a tree whose nodes name their children, which are listed after them."""
    depths = [1] * len(children)
    for number, below in enumerate(children):
        for child in below:
            if number < child < len(depths):
                depths[child] = depths[number] + 1
    return max(depths, default=1)


class _Thrift:
    """The compact protocol, as far as the list of schema elements."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def children_of_schema(self) -> Iterator[int]:
        """Yield the number of children of each schema element, in their order (FileMetaData.schema)."""
        for number, kind in self._fields():
            if number != 2:
                self._skip(kind)
                continue
            for _ in range(self._list()[0]):
                count = 0
                for of_element, its_kind in self._fields():
                    if of_element == 5:
                        count = self._zigzag()
                    else:
                        self._skip(its_kind)
                yield count
            return

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number is too long")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        return (self._varint() if head >> 4 == 15 else head >> 4), head & 15

    def _fields(self) -> Iterator[tuple[int, int]]:
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            yield number, head & 15

    def _skip(self, kind: int, depth: int = 0) -> None:
        if depth > 20:
            raise ValueError("no footer of parquet nests so deep")
        if kind == 3:
            self._at += 1
        elif kind in (4, 5, 6):
            self._varint()
        elif kind == 7:
            self._at += 8
        elif kind == 8:
            length = self._varint()
            self._at += length
        elif kind in (9, 10):
            count, of = self._list()
            for _ in range(count):
                self._at += of in (1, 2)  # a byte each, unlike in a struct
                self._skip(of, depth + 1)
        elif kind == 12:
            for _, of in self._fields():
                self._skip(of, depth + 1)
        elif kind not in (1, 2):
            raise ValueError("this is not the compact protocol")


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message of Protocol Buffers: numbers, and texts or messages as bytes."""
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        if key & 7 == 0:
            value, at = _number(message, at)
            yield key >> 3, value
        elif key & 7 == 2:
            length, at = _number(message, at)
            yield key >> 3, message[at : at + length]
            at += length
        elif key & 7 in (1, 5):
            at += 8 if key & 7 == 1 else 4
        else:
            raise ValueError("this is no message")


def _number(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number is too long")


def _subtypes(message: int | bytes) -> list[int]:
    found: list[int] = []
    for number, value in _fields(message) if isinstance(message, bytes) else ():
        if number == 2 and isinstance(value, int):
            found.append(value)
        elif number == 2 and isinstance(value, bytes):
            at = 0
            while at < len(value):
                child, at = _number(value, at)
                found.append(child)
    return found


def _unpacked(content: bytes, kind: int, most: int) -> bytes | None:
    """Return a section of ORC without its compression, a little more than `most` of it; None where no codec
    is at hand."""
    if kind == 0:
        return content
    if kind not in (1, 5):
        return None
    found, at = bytearray(), 0
    while at + 3 <= len(content) and len(found) <= most:
        head = int.from_bytes(content[at : at + 3], "little")
        piece = content[at + 3 : at + 3 + (head >> 1)]
        at += 3 + (head >> 1)
        found += piece if head & 1 else _piece(piece, kind, most)
    return bytes(found)


def _piece(piece: bytes, kind: int, most: int) -> bytes:
    if kind == 1:
        return zlib.decompressobj(-15).decompress(piece, most + 1)
    import pyarrow as pa

    return bytes(pa.CompressedInputStream(pa.BufferReader(piece), "zstd").read(most + 1))
