"""Spark's compacted logs of files: those that a file source has seen, or that a file sink has written.

Source: org.apache.spark.sql.execution.streaming.runtime.CompactibleFileStreamLog and
FileStreamSource.FileEntry (Spark 4.2). ``<n>`` holds the files of log entry n, ``<n>.compact`` those
of entry n and all before; superseded entries stay about ten minutes before they are deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from drawdown.checkpoint.checksums import delete_with_checksum, replace_with_checksum
from drawdown.checkpoint.log_tail import PIECE, pieces_from_end
from drawdown.checkpoint.log_text import (
    behind_version,
    lines_of,
    parse_object,
    read_lines,
    torn,
    verify_first,
)
from drawdown.errors import RefusedError
from drawdown.spec.connections.object_storage import is_object_storage
from drawdown.storage import FileInfo, Storage

_NEWEST_VERSION = 1
_ENTRY_FILE = re.compile(r"([0-9]+)(\.compact)?")
# Fields of a line in a file source's log (FileStreamSource.FileEntry), and in a file sink's (SinkFileStatus).
SOURCE_FIELDS: Mapping[str, type] = {"path": str, "timestamp": int, "batchId": int}
SINK_FIELDS: Mapping[str, type] = {"path": str, "size": int, "modificationTime": int, "action": str}
# spark.sql.streaming.fileSource.log.compactInterval
_COMPACT_INTERVAL = 10
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
        storage: the storage that holds the log.
        folder: relative to the storage root: ``<checkpoint>/sources/0`` or ``<sink>/_spark_metadata``.
        fields: the fields that every line must have, with their types.
    """

    def __init__(self, storage: Storage, folder: str, fields: Mapping[str, type]) -> None:
        self._storage = storage
        self._folder = folder
        self._fields = fields

    def everything(self) -> list[dict[str, Any]]:
        """Return all lines: those of the newest compacted entry and of the entries after it.

        Raises:
            RefusedError: a file is torn, foreign or of a newer version; ``checkpoint.missing-entry``
                when an entry is missing and in no compacted one.
        """
        return [record for file in self._needed() for record in self._read(file.name)]

    def newest_first(self) -> Iterator[list[dict[str, Any]]]:
        """Yield all lines in blocks, the newest block first: a reader that stops reads no more of the log.

        Spark appends: later entries are behind earlier ones, in a compacted entry, too. The first block has
        the last megabyte of the log, each further one at least another. A damaged line is found when its
        block is read.

        Raises:
            RefusedError: see `everything`.
        """
        block: list[dict[str, Any]] = []
        size = 0
        for file in reversed(self._needed()):
            for length, records in self._pieces(file):
                block, size = records + block, size + length
                if size >= PIECE:
                    yield block
                    block, size = [], 0
        if block:
            yield block

    def _needed(self) -> list[FileInfo]:
        """Return the newest compacted entry and the entries after it, ascending; refuse gaps."""
        plain, compact = self._entries()
        base = max(compact, default=-1)
        wanted = range(base + 1, max(plain | compact, default=-1) + 1)
        self._refuse_gaps(set(wanted) - plain.keys())
        return [*([compact[base]] if compact else []), *(plain[entry] for entry in wanted)]

    def _pieces(self, file: FileInfo) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Yield the lines of one file, the last ones first, with how many bytes they are."""
        if file.size <= PIECE:
            yield file.size, self._read(file.name)
            return
        for start, content in pieces_from_end(self._storage, file):
            lines = lines_of(self._storage, file.relative, content)
            if start == 0:
                _, lines = behind_version(self._storage, file.relative, lines, _NEWEST_VERSION)
            yield len(content), self._parsed(file.relative, lines)

    def between(self, first: int, last: int) -> list[dict[str, Any]]:
        """Return the lines of the entries `first` to `last`, both included, in their order.

        Reads the entries themselves if they still exist, so that its cost does not grow with the history;
        else the first compacted entry that holds them. Only for lines with a ``batchId``.

        Raises:
            RefusedError: see `everything`.
        """
        plain, compact = self._entries()
        wanted = range(first, last + 1)
        gone = set(wanted) - plain.keys()
        holders = [entry for entry in compact if gone and entry >= max(gone)]
        self._refuse_gaps(set() if holders else gone)
        names = [f"{min(holders)}.compact"] if holders else []
        names += [str(entry) for entry in wanted if entry in plain]
        # An entry can be in both: the key removes the duplicate.
        records = {
            (record["batchId"], record["path"]): record
            for name in names
            for record in self._read(name)
            if record.get("batchId") in wanted
        }
        return sorted(records.values(), key=lambda record: int(record["batchId"]))

    def names(self) -> dict[str, int]:
        """Return the log's file names with their entries, ascending; compacted entries follow plain ones."""
        plain, compact = self._entries()
        both = [(n, f"{n}") for n in plain] + [(n, f"{n}.compact") for n in compact]
        return {name: entry for entry, name in sorted(both)}

    def compacted(self) -> int:
        """Return the newest compacted entry, -1 for none."""
        return max(self._entries()[1], default=-1)

    def holds(self, entry: int) -> bool:
        """Whether an entry is there, or in a compacted one: Spark removes those that a later one repeats."""
        plain, compact = self._entries()
        return entry in plain or entry <= max(compact, default=-1)

    def newest(self) -> list[dict[str, Any]]:
        """Return the lines of the newest entry, of a large one the last. Raises as `everything`."""
        plain, compact = self._entries()
        if not plain and not compact:
            return []
        entry = max(plain | compact)
        _, records = next(self._pieces(compact.get(entry) or plain[entry]))
        return records

    def rename(self, spelled: Callable[[str], str]) -> int:
        """Rewrite the path of every line, entry by entry, the newest last; return how many changed."""
        changed = 0
        for name in self.names():
            records = self._read(name)
            others = [{**record, "path": spelled(record["path"])} for record in records]
            if others != records:
                self._write(name, others)
            changed += sum(a != b for a, b in zip(records, others, strict=True))
        return changed

    def cut(self, last: int) -> None:
        """Rewind the log of a source to its content after entry `last`: newer files are unseen again.

        Entries that were compacted since are written again from the compacted one, so that Spark finds all
        that it needs: the compacted entry that is due at or before `last`, and each entry after it.
        Everything that is kept is written before anything is removed.

        Raises:
            RefusedError: see `everything`.
        """
        plain, compact = self._entries()
        interval = _compact_interval(compact)
        base = (last + 1) // interval * interval - 1
        records = self.everything()
        if base >= 0 and base not in compact:
            self._write(f"{base}.compact", [r for r in records if r["batchId"] <= base])
        for entry in set(range(base + 1, last + 1)) - plain.keys():
            self._write(str(entry), [r for r in records if r["batchId"] == entry])
        for name, entry in self.names().items():
            if entry > last:
                delete_with_checksum(self._storage, f"{self._folder}/{name}")

    def _write(self, name: str, records: list[dict[str, Any]]) -> None:
        lines = [f"v{_NEWEST_VERSION}", *(json.dumps(record, separators=(",", ":")) for record in records)]
        replace_with_checksum(self._storage, f"{self._folder}/{name}", "\n".join(lines).encode())

    def _refuse_gaps(self, missing: set[int]) -> None:
        if missing:
            raise RefusedError(
                "checkpoint.missing-entry",
                f"entry {min(missing)} of a log of files is missing, and no compacted entry contains it",
                where=self._storage.path(self._folder),
                do=verify_first(self._folder),
            )

    def _entries(self) -> tuple[dict[int, FileInfo], dict[int, FileInfo]]:
        """Return the files of plain and of compacted entries."""
        plain: dict[int, FileInfo] = {}
        compact: dict[int, FileInfo] = {}
        for info in self._storage.walk(self._folder, depth=1):
            # If the folder is a file, walk returns the file itself.
            in_folder = info.relative != self._folder
            if in_folder and (name := _ENTRY_FILE.fullmatch(info.name)):
                (compact if name[2] else plain)[int(name[1])] = info
        return plain, compact

    def _read(self, name: str) -> list[dict[str, Any]]:
        path = f"{self._folder}/{name}"
        _, lines = read_lines(self._storage, path, _NEWEST_VERSION)
        return self._parsed(path, lines)

    def _parsed(self, path: str, lines: list[str]) -> list[dict[str, Any]]:
        records = [parse_object(self._storage, path, line) for line in lines]
        for record in records:
            if wrong := [
                name for name, kind in self._fields.items() if not isinstance(record.get(name), kind)
            ]:
                raise torn(self._storage, path, f"a line has no right {' and no right '.join(wrong)}")
        return records


def _compact_interval(compact: Collection[int]) -> int:
    """Return after how many entries the log is compacted, as Spark derives it at a restart.

    The files win over the setting (`compactInterval` and `deriveCompactInterval` of
    CompactibleFileStreamLog).
    """
    *_, before, newest = [None, None, *sorted(compact)]
    if newest is None:
        return _COMPACT_INTERVAL
    if before is not None:
        return newest - before
    entries = newest + 1
    return next((n for n in range(_COMPACT_INTERVAL, entries // 2 + 1) if entries % n == 0), entries)


def log_offset(offset: Any) -> int | None:
    """Return the newest log entry that an offset names (FileStreamSourceOffset); None for other sources.

    Offsets of other sources are numbers (rate, socket) or objects with other keys.
    """
    if isinstance(offset, Mapping) and offset.keys() == {"logOffset"}:
        return int(offset["logOffset"])
    return None


def seen_file(record: Mapping[str, Any]) -> SeenFile:
    """Return a line with SOURCE_FIELDS as a record.

    Of an object its time is whole seconds, as `ObjectFiles` has it.
    """
    path, timestamp = plain_path(unquote(record["path"])), record["timestamp"]
    if is_object_storage(path):
        timestamp -= timestamp % 1000
    return SeenFile(path, timestamp, record["batchId"])


def plain_path(path: str) -> str:
    """Return a path in one spelling: local paths without scheme (Spark writes file:/x and file:///x)."""
    return _LOCAL.sub("/", path)
