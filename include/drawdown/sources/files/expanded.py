"""The text of a compressed file, in pieces of bounded size: as Spark reads it, by the ending of the name.

Source: CompressionCodecFactory of Hadoop 3.5, which knows a codec by the ending as it is written. Files of
lz4 and snappy are in Hadoop's own framing; of these only the size is found, from the heads of their blocks.
"""

from __future__ import annotations

import bz2
import gzip
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Protocol, cast

_PIECE = 65_536


class Readable(Protocol):
    """What gives at most so many bytes, and none at the end."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Codec:
    """How files with one ending are compressed.

    Attributes:
        most: how many times its own size a file can become at most, by the format; rounded up.
        opened: gives the text; None when there is no decoder for it.
    """

    most: int
    opened: Callable[[BinaryIO], Readable] | None


class _Deflated:
    """A zlib stream."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._zlib = file, zlib.decompressobj()

    def read(self, size: int, /) -> bytes:
        while not self._zlib.eof:
            given = self._zlib.unconsumed_tail or self._file.read(_PIECE)
            if found := self._zlib.decompress(given, size):
                return found
            if not given:
                break
        return b""


class _StaysOpen:
    """A file that pyarrow cannot close."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read

    def close(self) -> None:
        """Leave it to who has opened it."""


def _zstd(file: BinaryIO) -> Readable:
    import pyarrow as pa

    stream = pa.PythonFile(_StaysOpen(file), mode="r")
    return cast("Readable", pa.CompressedInputStream(stream, "zstd"))


CODECS: Mapping[str, Codec] = {
    ".gz": Codec(1_032, lambda file: gzip.GzipFile(fileobj=file)),
    ".deflate": Codec(1_032, _Deflated),
    # A block has at least 40 bytes and holds at most 900,000, of which 5 can stand for 259 of the text.
    ".bz2": Codec(1_200_000, lambda file: bz2.BZ2File(file)),
    ".zst": Codec(50_000, _zstd),
    ".lz4": Codec(256, None),
    ".snappy": Codec(32, None),
}


def codec_of(name: str) -> Codec | None:
    """Return how a file is compressed; None for one that is not."""
    return next((codec for ending, codec in CODECS.items() if name.endswith(ending)), None)


def pieces(file: Readable, size: int) -> Iterator[bytes]:
    """Yield the text in pieces of at most `size` bytes; what follows a damaged place is left out."""
    try:
        while piece := file.read(size):
            yield bytes(piece)
    except (OSError, EOFError, zlib.error, ValueError):
        # The batch reports a file that cannot be read.
        return


def claimed(file: BinaryIO, name: str, size: int) -> int:
    """Return how large the text says that it is: nobody has checked it. 0 where it says nothing.

    Of gzip the last member's size, modulo 4 GiB; of Hadoop's block format the sum of the blocks.
    """
    if name.endswith(".gz") and size >= 18:
        file.seek(size - 4)
        return int(struct.unpack("<I", file.read(4))[0])
    if name.endswith((".lz4", ".snappy")):
        return sum(_blocks(file, size))
    return 0


def _blocks(file: BinaryIO, size: int) -> Iterator[int]:
    at = 0
    while at + 8 <= size:
        file.seek(at)
        text, packed = struct.unpack(">II", file.read(8))
        yield text
        at += 8 + packed
