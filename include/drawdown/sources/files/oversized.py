"""Whether a file is beyond its source's `limits:`, so that reading it could end Spark's JVM.

Cheap looks come first: size, the last bytes, the first megabyte. An ordinary file is not read a second time.
A compressed one is unpacked, in pieces, only when it is small or when a look says that it expands more than
text does. A file that hides what it becomes passes the looks; if it ends the JVM, its batch is looked at
thoroughly in the next run (application/suspects.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, cast

from drawdown.sources.files.expanded import Codec, claimed, codec_of, pieces
from drawdown.sources.files.footers import Most, orc_shape, parquet_shape, parquet_without_rows
from drawdown.sources.files.record_length import (
    LARGEST_PIECE,
    any_longer,
    is_longer,
    piece_length,
    separators,
)
from drawdown.spec import Source
from drawdown.spec.limits import SourceLimits
from drawdown.storage import FileInfo, Storage
from drawdown.values.text import sized

_SMALL = 1 << 20
"""Bytes of a compressed file that is always unpacked: of ordinary text that takes less than 0.1 s."""
_ORDINARY = 25
"""How many times its own size a compressed file of ordinary text becomes at most."""
_LOOK = 65_536
_SHOWN = 120
"""Characters of what a library says."""
_SPARKS_COLUMNS = 20_480


def oversized(
    storage: Storage, source: Source, file: FileInfo, bounds: SourceLimits, *, thorough: bool = False
) -> str | None:
    """Return in which way a file is beyond the limits; None when it is not, or is no file of its format.

    Args:
        thorough: unpack and read whatever could be too long, although no look says so.
    """
    options = {name.lower(): str(value) for name, value in source.options.items()}
    try:
        with storage.open(file.relative) if _may_be(source, file, bounds) else _nothing() as opened:
            if opened is None:
                return None
            if source.format in ("parquet", "orc"):
                return _of_footer(opened, source.format, file, bounds)
            return _Text(opened, source.format, file, bounds, options, thorough).beyond()
    except FileNotFoundError:
        # The batch reports a file that is gone.
        return None


class _nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _may_be(source: Source, file: FileInfo, bounds: SourceLimits) -> bool:
    """Whether a file of this size can be beyond the limits at all."""
    if source.format in ("parquet", "orc"):
        return True  # the columns of a small file can be too many
    if source.format == "csv" and file.size * (1 if codec_of(file.name) is None else 1_032) > bounds.columns:
        return True  # each separator takes a byte
    codec = codec_of(file.name)
    return file.size * (codec.most if codec else 1) > bounds.record


def _of_footer(opened: BinaryIO, format: str, file: FileInfo, bounds: SourceLimits) -> str | None:
    most = Most(bounds.record, bounds.columns, bounds.nesting)
    found = (parquet_shape if format == "parquet" else orc_shape)(opened, file.size, most)
    if found is None:
        return None
    if found.footer > bounds.record:
        return f"its footer has {sized(found.footer)} (`record`)"
    if found.block > bounds.record:
        return f"it is compressed in blocks of {sized(found.block)} (`record`)"
    if found.hidden:
        return f"its columns cannot be counted, for of its footer {found.hidden}"
    if found.columns > bounds.columns:
        return _too_many(bounds)
    if found.levels > bounds.nesting:
        return _too_deep(bounds)
    return _of_row_groups(opened, file, bounds) if format == "parquet" else None


def _too_many(bounds: SourceLimits) -> str:
    return f"it has more than {bounds.columns:,} columns (`columns`)"


def _too_deep(bounds: SourceLimits) -> str:
    return f"its columns nest more than {bounds.nesting:,} levels (`nesting`)"


def _of_row_groups(opened: BinaryIO, file: FileInfo, bounds: SourceLimits) -> str | None:
    """Look at the whole footer with a library: of a field that comes twice it takes the last, too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    footer = parquet_without_rows(opened, file.size)
    if footer is None:
        return None
    try:
        said = pq.read_metadata(pa.BufferReader(footer))
        full = sum(said.row_group(number).total_byte_size for number in range(said.num_row_groups))
        if said.num_columns > bounds.columns:
            return _too_many(bounds)
        schema = said.schema
        if any(schema.column(n).max_definition_level > bounds.nesting for n in range(said.num_columns)):
            return _too_deep(bounds)
    except (pa.ArrowException, OSError, ValueError) as error:
        return f"its footer cannot be read ({' '.join(str(error).split())[:_SHOWN]})"
    return _expansion(full, file, bounds)


def _expansion(full: int, file: FileInfo, bounds: SourceLimits) -> str | None:
    if full > bounds.record and full > bounds.expansion * file.size:
        return f"its {sized(file.size)} become more than {bounds.expansion:,} times that (`expansion`)"
    return None


@dataclass
class _Text:
    """One file of csv, json, xml or text."""

    opened: BinaryIO
    format: str
    file: FileInfo
    bounds: SourceLimits
    options: Mapping[str, str]
    thorough: bool

    def __post_init__(self) -> None:
        self.codec: Codec | None = codec_of(self.file.name)
        whole = self.options.get("wholetext" if self.format == "text" else "multiline", "").lower() == "true"
        self.is_one = whole and self.format in ("json", "text")
        # In a csv file of this kind a line may be a part of a value; Spark's parser bounds the value.
        self.has_records = not whole or self.format == "xml"
        self.ends = separators(self.format, self.options)

    def beyond(self) -> str | None:
        """Return in which way the file is beyond the limits."""
        found = self._plain() if self.codec is None else self._compressed(self.codec)
        return found or (self._columns() if self.format == "csv" else None)

    def _plain(self) -> str | None:
        if self.file.size <= self.bounds.record:
            return None
        if self.is_one:
            return self._as_one()
        too_long = self.has_records and is_longer(self.opened, self.file.size, self.ends, self.bounds.record)
        return self._too_long() if too_long else None

    def _compressed(self, codec: Codec) -> str | None:
        if self.file.size * codec.most <= self.bounds.record:
            return None
        if codec.opened is None:
            return _expansion(claimed(self.opened, self.file.name, self.file.size), self.file, self.bounds)
        return self._unpacked() if self.is_one or self.thorough or self._is_suspicious() else None

    def _is_suspicious(self) -> bool:
        size, ordinary = self.file.size, min(_ORDINARY, self.bounds.expansion)
        if size <= _SMALL or claimed(self.opened, self.file.name, size) > ordinary * size:
            return True
        counting = _CountedReads(self.opened)
        first = next(self._pieces(LARGEST_PIECE, counting), b"")
        return not any(end in first for end in self.ends) or len(first) > ordinary * max(counting.taken, 1)

    def _pieces(self, length: int, counting: _CountedReads | None = None) -> Iterator[bytes]:
        assert self.codec is not None
        assert self.codec.opened is not None
        self.opened.seek(0)
        return pieces(self.codec.opened(cast("BinaryIO", counting or self.opened)), length)

    def _unpacked(self) -> str | None:
        full = 0

        def bounded() -> Iterator[bytes]:
            nonlocal full
            for piece in self._pieces(piece_length(self.bounds.record)):
                full += len(piece)
                if _expansion(full, self.file, self.bounds) or (self.is_one and full > self.bounds.record):
                    return
                yield piece

        if self.is_one or not self.has_records:
            for _ in bounded():
                pass
        elif any_longer(bounded(), self.ends, self.bounds.record):
            return self._too_long()
        if self.is_one and full > self.bounds.record:
            return self._as_one()
        return _expansion(full, self.file, self.bounds)

    def _too_long(self) -> str:
        return f"a record of it is longer than {sized(self.bounds.record)} (`record`)"

    def _as_one(self) -> str:
        return f"it is one record, of more than {sized(self.bounds.record)} (`record`)"

    def _columns(self) -> str | None:
        """Count the columns of a csv file's first line; thoroughly: of each line that Spark cannot read."""
        sep = self.options.get("sep", self.options.get("delimiter", ",")).replace("\\t", "\t").encode()
        if not sep or (self.codec is not None and self.codec.opened is None):
            return None
        most = csv_columns(self.options, self.bounds) if self.thorough else self.bounds.columns
        seen = read = 0
        for piece in self._pieces(_LOOK) if self.codec else self._as_it_is():
            read += len(piece)
            lines = piece.replace(b"\r", b"\n").split(b"\n")
            for number, line in enumerate(lines if self.thorough else lines[:1]):
                seen = (seen if number == 0 else 0) + line.count(sep)
                if seen >= most:
                    return f"a line of it has more than {most:,} columns (`columns`)"
            if not self.thorough and (len(lines) > 1 or read > self.bounds.record):
                return None
        return None

    def _as_it_is(self) -> Iterator[bytes]:
        self.opened.seek(0)
        return iter(lambda: self.opened.read(_LOOK), b"")


def csv_columns(options: Mapping[str, str], bounds: SourceLimits) -> int:
    """Return how many columns of a line Spark's csv parser takes; a line with more fails the whole read.

    Args:
        options: the source's options, with names in lower case.
    """
    given = options.get("maxcolumns", "")
    return int(given) if given.isdigit() else max(_SPARKS_COLUMNS, bounds.columns)


class _CountedReads:
    """A file that counts what is taken from it."""

    def __init__(self, file: BinaryIO) -> None:
        self._read: Callable[[int], bytes] = file.read
        self._file, self.taken = file, 0

    def read(self, size: int = -1, /) -> bytes:
        found = self._read(size)
        self.taken += len(found)
        return found

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)
