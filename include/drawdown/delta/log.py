"""The log of a Delta table: the newest version at a time, and the files that are named since a version.

Source: Delta's transaction log protocol: an entry has one action per line, with paths as in a URL.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from drawdown.delta.table import DeltaTableFiles
from drawdown.storage import FileInfo, Storage
from drawdown.values.json_text import read_json

_NAMING = ("add", "cdc")


class TableLog:
    """The log as it was when it was first read; nothing is written.

    Args:
        uri: the table, as `Storage.path` returned it.

    Raises (from every method):
        SourceError: ``sink.unreadable``, or the storage cannot be reached.
    """

    def __init__(self, storage: Storage, uri: str) -> None:
        self._storage = storage
        self._files = DeltaTableFiles(uri)
        self.uri = uri
        self.folder = storage.relative(uri)

    @property
    def table_id(self) -> str:
        return self._files.table_id

    @cached_property
    def newest(self) -> int:
        return self._files.version

    def version_at(self, at_ms: int) -> int:
        """Return the newest version at a time (milliseconds since 1970 UTC, the storage's clock).

        For a time before all kept entries, return the oldest of them.
        """
        found = min(self._entries, default=self.newest)
        for version, info in sorted(self._entries.items()):
            # In Delta, an entry is never older than the one before it.
            if info.mtime_ms > at_ms:
                break
            found = version
        return found

    def named_since(self, version: int) -> set[str]:
        """Return every file that this version or a later one names, absolute, as in a listing.

        For versions that the log no longer has, the later entries are used.
        """
        names = set(self._files.referenced())
        readable = next(self._readable(version), None)
        if readable is not None:
            names |= readable.referenced()
        for number, info in self._entries.items():
            if number >= version:
                names |= {self._absolute(path) for path in self._named_in(info)}
        return names

    @cached_property
    def _entries(self) -> dict[int, FileInfo]:
        below = self._storage.walk(f"{self.folder}/_delta_log", depth=1)
        numbered = ((info.name.removesuffix(".json"), info) for info in below if info.name.endswith(".json"))
        return {int(number): info for number, info in numbered if number.isdigit()}

    def _readable(self, version: int) -> Iterator[DeltaTableFiles]:
        """Yield the table as of a version, or of the next version that the log still has."""
        for number in range(version, self.newest):
            then = self._files.as_of(number)
            if then is not None:
                yield then

    def _named_in(self, entry: FileInfo) -> Iterator[str]:
        for line in self._storage.read_bytes(entry.relative).splitlines():
            action: dict[str, Any] = read_json(line)
            yield from (unquote(action[kind]["path"]) for kind in _NAMING if kind in action)

    def _absolute(self, path: str) -> str:
        return path if "://" in path or path.startswith("/") else f"{self.uri}/{path}"
