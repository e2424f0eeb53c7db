"""Spark's compacted logs of files: what a file source has seen, what a file sink has written.

Source: org.apache.spark.sql.execution.streaming.runtime.CompactibleFileStreamLog and
FileStreamSource.FileEntry (Spark 4.2). ``<n>`` holds the files of log entry n, ``<n>.compact`` those
of entry n and all before; superseded entries stay about ten minutes before they are deleted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from drawdown.checkpoint.log_text import parse_object, read_lines, torn
from drawdown.errors import RefusedError
from drawdown.storage import Storage

_NEWEST_VERSION = 1
_ENTRY_FILE = re.compile(r"([0-9]+)(\.compact)?")
# What a line of a file source's log has (FileStreamSource.FileEntry), and of a file sink's (SinkFileStatus).
SOURCE_FIELDS: Mapping[str, type] = {"path": str, "timestamp": int, "batchId": int}
SINK_FIELDS: Mapping[str, type] = {"path": str, "size": int, "modificationTime": int, "action": str}
_LOCAL = re.compile(r"file:/+")


@dataclass(frozen=True, slots=True)
class SeenFile:
    """One file of a source log: `path` decoded (see `plain_path`), `timestamp_ms` since 1970 UTC."""

    path: str
    timestamp_ms: int
    log_offset: int


class FileLog:
    """One folder of a compacted log.

    Args:
        storage: where it is.
        folder: relative to the storage root: ``<checkpoint>/sources/0`` or ``<sink>/_spark_metadata``.
        fields: what every line must have, and of which type.
    """

    def __init__(self, storage: Storage, folder: str, fields: Mapping[str, type]) -> None:
        self._storage = storage
        self._folder = folder
        self._fields = fields

    def everything(self) -> list[dict[str, Any]]:
        """All lines: those of the newest compacted entry and of the entries after it.

        Raises:
            RefusedError: a file is torn, foreign or of a newer version; ``checkpoint.missing-entry``
                when an entry is neither there nor in a compacted one.
        """
        plain, compact = self._entries()
        base = max(compact, default=-1)
        wanted = range(base + 1, max(plain | compact, default=-1) + 1)
        self._refuse_gaps(set(wanted) - plain)
        names = [f"{base}.compact"] if compact else []
        return [record for name in [*names, *map(str, wanted)] for record in self._read(name)]

    def between(self, first: int, last: int) -> list[dict[str, Any]]:
        """The lines of the entries `first` to `last`, both included, in their order.

        Reads the entries themselves where they are still there, so that its cost does not grow with
        the history; else the first compacted entry that holds them. Only for lines with a ``batchId``.

        Raises:
            RefusedError: as `everything`.
        """
        plain, compact = self._entries()
        wanted = range(first, last + 1)
        gone = set(wanted) - plain
        holders = [entry for entry in compact if gone and entry >= max(gone)]
        self._refuse_gaps(set() if holders else gone)
        names = [f"{min(holders)}.compact"] if holders else []
        names += [str(entry) for entry in wanted if entry in plain]
        # An entry can be in both: the key keeps it once.
        records = {
            (record["batchId"], record["path"]): record
            for name in names
            for record in self._read(name)
            if record.get("batchId") in wanted
        }
        return sorted(records.values(), key=lambda record: int(record["batchId"]))

    def _refuse_gaps(self, missing: set[int]) -> None:
        if missing:
            raise RefusedError(
                "checkpoint.missing-entry",
                f"entry {min(missing)} of a log of files is gone, and no compacted entry holds it",
                where=self._storage.path(self._folder),
                do="restore the file from a copy of the checkpoint, or rebuild the pipeline from its sources",
            )

    def _entries(self) -> tuple[set[int], set[int]]:
        plain: set[int] = set()
        compact: set[int] = set()
        for info in self._storage.walk(self._folder, depth=1):
            if name := _ENTRY_FILE.fullmatch(info.name):
                (compact if name[2] else plain).add(int(name[1]))
        return plain, compact

    def _read(self, name: str) -> list[dict[str, Any]]:
        path = f"{self._folder}/{name}"
        _, lines = read_lines(self._storage, path, _NEWEST_VERSION)
        records = [parse_object(self._storage, path, line) for line in lines]
        for record in records:
            if wrong := [
                name for name, kind in self._fields.items() if not isinstance(record.get(name), kind)
            ]:
                raise torn(self._storage, path, f"a line has no right {' and no right '.join(wrong)}")
        return records


def log_offset(offset: Any) -> int | None:
    """The newest entry of the log that an offset names (FileStreamSourceOffset); None for any other source.

    Others are numbers (rate, socket), or objects with keys of their own.
    """
    if isinstance(offset, Mapping) and offset.keys() == {"logOffset"}:
        return int(offset["logOffset"])
    return None


def seen_file(record: Mapping[str, Any]) -> SeenFile:
    """A line with SOURCE_FIELDS as a record."""
    return SeenFile(plain_path(unquote(record["path"])), record["timestamp"], record["batchId"])


def plain_path(path: str) -> str:
    """One spelling of a path: a local one without scheme (Spark writes file:/x and file:///x)."""
    return _LOCAL.sub("/", path)
