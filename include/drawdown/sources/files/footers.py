"""How many columns and levels the footer of a parquet or ORC file declares, read without building its schema.

Libraries build a schema by recursion, which ends the process where it nests thousands of levels. Both footers
hold their types as a flat list, so they can be counted first. What Spark's readers would take in another way
than this one is not counted at all: the shape says why (`hidden`). Sources: parquet.thrift (Thrift's compact
protocol), orc_proto.proto (Protocol Buffers).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
        hidden: why columns and levels could not be counted.
    """

    footer: int
    columns: int = 0
    levels: int = 0
    block: int = 0
    hidden: str = ""


@dataclass(frozen=True)
class Most:
    """Where counting stops: a shape beyond it has the first number that is.

    Attributes:
        footer: bytes of a footer that is read.
    """

    footer: int
    columns: int
    levels: int

    @property
    def types(self) -> int:
        """Return how many columns, with and without children, a footer has at most: a list of lists has 5."""
        return 8 * self.columns + self.levels + 1


_UNREADABLE = "it is damaged, or made to be read in more than one way"
_PIECES = 20_000
"""Compressed pieces of a footer: a writer makes them no smaller than 4 KiB."""


def parquet_shape(file: BinaryIO, size: int, most: Most) -> Shape | None:
    """Return the shape of a parquet file; None for what is none, which every reader refuses at once."""
    length = _footer_length(file, size)
    if length is None or length > most.footer:
        return None if length is None else Shape(length)
    file.seek(size - 8 - length)
    footer = file.read(length)
    try:
        columns, levels = _of_tree(_Thrift(footer, 20 * most.types).children_of_schema(), most)
    except (IndexError, ValueError):
        return Shape(length, hidden=_UNREADABLE)
    return Shape(length, columns, levels)


def parquet_without_rows(file: BinaryIO, size: int) -> bytes | None:
    """Return a parquet file's mark and footer, for a library to read; None for what is none."""
    length = _footer_length(file, size)
    if length is None:
        return None
    file.seek(size - 8 - length)
    return b"PAR1" + file.read(length + 8)


def _footer_length(file: BinaryIO, size: int) -> int | None:
    if size < 12:
        return None
    file.seek(size - 8)
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    return None if tail[4:] != b"PAR1" or length > size - 8 else length


def orc_shape(file: BinaryIO, size: int, most: Most) -> Shape | None:
    """Return the shape of an ORC file; None for what is none; see `parquet_shape`."""
    if size < 16:
        return None
    file.seek(0)
    is_old = file.read(3) == b"ORC"  # readers take the mark at the start, too
    file.seek(max(size - 257, 0))
    tail = file.read(257)
    script = tail[-1 - tail[-1] : -1]
    is_marked = script.endswith(b"ORC")
    if not is_marked and not is_old:
        return None
    try:
        said = {number: value for number, value in _fields(script) if isinstance(value, int)}
    except (IndexError, ValueError):
        # Of a file that was cut off the batch says so.
        return Shape(0, hidden=_UNREADABLE) if is_marked else None
    return _of_orc_footer(file, size - 1 - len(script), said, most)


def _of_orc_footer(file: BinaryIO, end: int, said: Mapping[int, int], most: Most) -> Shape:
    length, kind = said.get(1, 0), said.get(2, 0)
    block = said.get(3, 262_144 if kind else 0)
    whole = length + said.get(5, 0)
    if whole > most.footer or block > most.footer:
        return Shape(whole, block=block)
    if kind not in (0, *_CODECS):
        return Shape(length, block=block, hidden=f"it is compressed with {_KINDS.get(kind, f'codec {kind}')}")
    if length > end:
        return Shape(length, block=block, hidden=_UNREADABLE)
    file.seek(end - length)
    content = file.read(length)
    try:
        footer = _unpacked(content, kind, block, most.footer)
        if len(footer) > most.footer:
            return Shape(len(footer), block=block)
        children = list[list[int]]()
        columns = 0
        for number, value in _fields(footer):
            if number == 4 and columns <= most.columns and len(children) <= most.types:
                children.append(_subtypes(value))
                columns += not children[-1]
        if len(children) > most.types:
            return Shape(len(footer), most.columns + 1, block=block)
        levels = _levels_of(children, columns <= most.columns) - 1
    except (IndexError, ValueError, zlib.error, OSError):
        return Shape(length, block=block, hidden=_UNREADABLE)
    return Shape(len(footer), columns, levels, block)


def _of_tree(children: Iterable[int], most: Most) -> tuple[int, int]:
    """Return the columns and levels of a tree whose nodes are listed parent first, by their children."""
    columns = deepest = 0
    left = list[int]()
    for number, count in enumerate(children):
        while left and not left[-1]:
            left.pop()
        if left:
            left[-1] -= 1
        left.append(count)
        columns += not count
        deepest = max(deepest, len(left) - 1)
        if number > most.types:
            return most.columns + 1, deepest
        if columns > most.columns or deepest > most.levels:
            break
    return columns, deepest


def _levels_of(children: Sequence[Sequence[int]], are_all: bool) -> int:
    """Return the depth of a tree whose nodes name their children, which are listed after them."""
    depths, named = [1] * len(children), set[int]()
    for number, below in enumerate(children):
        for child in below:
            if child <= number or child in named:
                raise ValueError("this is no tree")
            named.add(child)
            if child < len(depths):
                depths[child] = depths[number] + 1
            elif are_all:
                raise ValueError("a column is missing")
    return max(depths, default=1)


_I32, _LIST, _STRUCT = 5, 9, 12


class _Thrift:
    """The compact protocol, as far as the list of schema elements.

    Args:
        steps: values that are read at most.
    """

    def __init__(self, content: bytes, steps: int) -> None:
        self._content, self._at, self._left = content, 0, steps

    def children_of_schema(self) -> Iterator[int]:
        """Yield the number of children of each schema element, in their order (FileMetaData.schema)."""
        for number, kind in self._fields():
            if number != 2 or kind != _LIST:
                self._skip(kind)
                continue
            length, of = self._list()
            if of != _STRUCT:
                raise ValueError("this is no schema")
            for _ in range(length):
                count = 0
                for of_element, its_kind in self._fields():
                    if of_element == 5 and its_kind == _I32:
                        count = self._i32()
                    else:
                        self._skip(its_kind)
                if count < 0:
                    raise ValueError("this is no number of children")
                yield count
            return
        raise ValueError("there is no schema")

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

    def _i32(self) -> int:
        value = self._varint()
        if value >> 32:
            # Readers cut the number off, each in its own way.
            raise ValueError("a number is too large")
        return (value >> 1) ^ -(value & 1)

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        length = self._varint() if head >> 4 == 15 else head >> 4
        if length > len(self._content) - self._at:
            raise ValueError("a list is longer than the footer")
        return length, head & 15

    def _fields(self) -> Iterator[tuple[int, int]]:
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._i32()
            if not 0 <= number < 1 << 15:
                raise ValueError("this is no number of a field")
            yield number, head & 15

    def _skip(self, kind: int, depth: int = 0) -> None:
        self._left -= 1
        if self._left < 0:
            raise ValueError("this is more than a schema says")
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
        if key >> 32:
            raise ValueError("this is no number of a field")
        if key & 7 == 0:
            value, at = _number(message, at)
            yield key >> 3, value
        elif key & 7 == 2:
            length, at = _number(message, at)
            if length > len(message) - at:
                raise ValueError("a value is longer than its message")
            yield key >> 3, message[at : at + length]
            at += length
        elif key & 7 in (1, 5):
            at += 8 if key & 7 == 1 else 4
        else:
            # Groups, which no writer of ORC uses: they nest without saying how long they are.
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
    if isinstance(message, int):
        raise ValueError("this is no type")
    found: list[int] = []
    for number, value in _fields(message):
        if number == 2 and isinstance(value, int):
            found.append(value)
        elif number == 2 and isinstance(value, bytes):
            at = 0
            while at < len(value):
                child, at = _number(value, at)
                found.append(child)
    if any(child >> 32 for child in found):
        raise ValueError("this is no number of a type")
    return found


def _unpacked(content: bytes, kind: int, block: int, most: int) -> bytes:
    """Return a section of ORC without its compression, a little more than `most` of it.

    Args:
        block: the bytes that a piece becomes at most.
    """
    if kind == 0:
        return content
    found, at, count = bytearray(), 0, 0
    while at < len(content) and len(found) <= most:
        head = int.from_bytes(content[at : at + 3], "little")
        piece = content[at + 3 : at + 3 + (head >> 1)]
        at, count = at + 3 + (head >> 1), count + 1
        if at > len(content) or count > _PIECES:
            raise ValueError("this is no compressed section")
        found += piece if head & 1 else _CODECS[kind](piece, block)
    return bytes(found)


def _inflated(piece: bytes, block: int) -> bytes:
    return zlib.decompressobj(-15).decompress(piece, block + 1)


def _zstd(piece: bytes, block: int) -> bytes:
    import pyarrow as pa

    return bytes(pa.CompressedInputStream(pa.BufferReader(piece), "zstd").read(block + 1))


def _snappy(piece: bytes, block: int) -> bytes:
    length, _ = _number(piece, 0)
    if length > block:
        raise ValueError("a piece is larger than its block")
    return _decoded("snappy", piece, length)


def _lz4(piece: bytes, block: int) -> bytes:
    """Unpack a piece that does not say how long its text is: the smallest room into which it fits."""
    fits, least = min(block, 255 * len(piece) + 64), 0
    text = _decoded("lz4_raw", piece, fits)
    while least < fits:
        length = (least + fits) // 2
        try:
            text, fits = _decoded("lz4_raw", piece, length), length
        except OSError:
            least = length + 1
    return text[:fits]


def _decoded(codec: str, piece: bytes, length: int) -> bytes:
    import pyarrow as pa

    return bytes(pa.Codec(codec).decompress(piece, length, asbytes=True))


_CODECS: Mapping[int, Callable[[bytes, int], bytes]] = {1: _inflated, 2: _snappy, 4: _lz4, 5: _zstd}
_KINDS: Mapping[int, str] = {3: "LZO", 6: "Brotli"}
