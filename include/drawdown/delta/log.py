"""The log of a Delta table: which version was the newest at a time, and which files are named since one.

Source: Delta's transaction log protocol: an entry has one action a line, with paths as in a URL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from drawdown.delta.table import DeltaTableFiles
from drawdown.storage import FileInfo, Storage

_NAMING = ("add", "cdc")


class TableLog:
    """The log as it was when it was first looked at; nothing is written.

    Args:
        uri: of the table, as `Storage.path` gave it.

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
        """The version that was the newest at a time (milliseconds since 1970 UTC, the storage's clock).

        Of a time before all entries that are kept the oldest of them.
        """
        found = min(self._entries, default=self.newest)
        for version, info in sorted(self._entries.items()):
            # As Delta has it, an entry is no older than the one before it.
            if info.mtime_ms > at_ms:
                break
            found = version
        return found

    def named_since(self, version: int) -> set[str]:
        """Every file that this version or a later one names, absolute, as a listing has them.

        Of versions that the log does not go back to, what later entries say is taken.
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
        """The table as of a version; where the log does not reach back so far, as of the next that it has."""
        for number in range(version, self.newest):
            then = self._files.as_of(number)
            if then is not None:
                yield then

    def _named_in(self, entry: FileInfo) -> Iterator[str]:
        for line in self._storage.read_bytes(entry.relative).splitlines():
            action: dict[str, Any] = json.loads(line)
            yield from (unquote(action[kind]["path"]) for kind in _NAMING if kind in action)

    def _absolute(self, path: str) -> str:
        return path if "://" in path or path.startswith("/") else f"{self.uri}/{path}"
