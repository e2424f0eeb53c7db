"""What each kind of store does for a storage: `LocalFiles`, `ObjectFiles`, `FsspecFiles`.

Paths are relative to the root, checked, with forward slashes; the root itself is empty. A missing file is
Python's FileNotFoundError.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Protocol


class Found(NamedTuple):
    """A file: path relative to the root, bytes, milliseconds since 1970 UTC."""

    relative: str
    size: int
    mtime_ms: int


class Files(Protocol):
    """The files below one root."""

    def exists(self, path: str) -> bool:
        """Whether a file or folder exists."""

    def info(self, path: str) -> Found | None:
        """Return a file; None when it is missing or a folder."""

    def walk(self, path: str, depth: int | None, after: str = "") -> Iterator[Found]:
        """Yield the files at or below a path, ``depth`` levels down, None all; nothing when it is missing.

        A store that lists by name leaves out those whose path is not greater than `after`.
        """

    def read(self, path: str) -> bytes:
        """Return a file's content."""

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return the bytes of a file from a position on."""

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading."""

    def replace(self, path: str, content: bytes) -> None:
        """Write a file as a whole, instead of what is there."""

    def create(self, path: str, content: bytes) -> None:
        """Write a file as a whole; FileExistsError when there is one. Of many who try, one succeeds."""

    def copy(self, path: str, target: str) -> None:
        """Copy a file to a path that nothing reads yet."""

    def makedirs(self, path: str) -> None:
        """Make a folder and its missing parents, where a store has folders."""

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with its content; nothing when it is missing."""
