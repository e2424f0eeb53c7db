"""Whether a record of a text file is longer than a limit, found by reading as little of it as possible.

A record ends at a separator (a line's end, or the next start of a row's element). If each half of the limit's
length has a separator in it, no record is longer than the limit: of an ordinary file some kilobytes in each
half are enough. Only where a half has none, all is read, in pieces.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping, Sequence
from typing import BinaryIO

_LOOK = 65_536
LARGEST_PIECE = 1 << 20


def separators(format: str, options: Mapping[str, str]) -> tuple[bytes, ...]:
    """Return the byte sequences that end a record, of which any counts.

    Args:
        options: the source's options, with names in lower case.
    """
    encoding = options.get("encoding", options.get("charset", "utf-8"))
    if format == "xml":
        start = f"<{options.get('rowtag', 'ROW')}"
        texts = [start + end for end in "> /\t\n\r"]  # of `r`, not of `rz`
    else:
        texts = [options.get("linesep", "")]
    if texts == [""]:
        texts = ["\n", "\r"]
    return tuple(dict.fromkeys(form for text in texts for form in _encoded(text, encoding)))


def _encoded(text: str, encoding: str) -> Sequence[bytes]:
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        return [text.encode()]
    # With a mark at the file's start, either order of bytes may follow.
    names = [f"{name}-le", f"{name}-be"] if name in ("utf-16", "utf-32") else [name]
    return [text.encode(each, "ignore") or text.encode() for each in names]


def is_longer(file: BinaryIO, size: int, ends: Sequence[bytes], limit: int) -> bool:
    """Whether a record of a file of this size is longer than the limit; the file must be seekable."""
    if size <= limit:
        return False
    half = max(limit // 2, 1)
    if all(_has(file, at, min(at + half, size), ends) for at in range(0, size - half, half)):
        return False
    file.seek(0)
    length = piece_length(limit)
    return any_longer(iter(lambda: file.read(length), b""), ends, limit)


def piece_length(limit: int) -> int:
    """Return how long pieces may be of which `any_longer` finds each record that is too long."""
    return max(min(LARGEST_PIECE, limit // 2), 1)


def any_longer(pieces: Iterable[bytes], ends: Sequence[bytes], limit: int) -> bool:
    """Whether a record in a text is longer than the limit; reads until the first that is.

    Args:
        pieces: the text, each piece at most `piece_length` long.
    """
    since, kept = 0, b""
    overlap = max(map(len, ends)) - 1
    for piece in pieces:
        text = kept + piece
        found = [at for end in ends if (at := text.find(end)) >= 0]
        if found:
            if since - len(kept) + min(found) > limit:
                return True
            since = len(text) - max(text.rfind(end) for end in ends)
        else:
            since += len(piece)
        if since > limit:
            return True
        kept = text[-overlap:] if overlap else b""
    return False


def _has(file: BinaryIO, start: int, stop: int, ends: Sequence[bytes]) -> bool:
    file.seek(start)
    kept, left = b"", stop - start
    overlap = max(map(len, ends)) - 1
    while left > 0 and (piece := file.read(min(_LOOK, left))):
        if any(end in kept + piece for end in ends):
            return True
        kept, left = piece[-overlap:] if overlap else b"", left - len(piece)
    return False
