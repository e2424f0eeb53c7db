"""A log file read from its end, piece by piece: what was written last is found without the rest."""

from __future__ import annotations

from collections.abc import Iterator

from drawdown.storage import FileInfo, Storage

PIECE = 1 << 20
"""Bytes of the first piece; each further one is twice as large, up to `_LARGEST`."""
_LARGEST = 16 << 20


def pieces_from_end(storage: Storage, file: FileInfo) -> Iterator[tuple[int, bytes]]:
    """Yield pieces of whole lines, the last lines first, each with the position of its first byte."""
    end, size, cut = file.size, PIECE, b""
    while end > 0:
        start = max(0, end - size)
        content = storage.read_range(file.relative, start, end - start) + cut
        if start > 0:
            # The first line of a piece may have begun before it.
            cut, _, content = content.partition(b"\n")
        if content:
            yield start, content
        end, size = start, min(2 * size, _LARGEST)
