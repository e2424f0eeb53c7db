"""Verify a checkpoint: read every file of its logs and its state; change nothing.

Files that the next run reads are distinguished from history. If the last commit is batch n, the next run
reads: metadata, the newest offsets and those of n, the commit of n, the logs of files from their newest
compacted entry on, and of every state store the files of version n + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from drawdown.checkpoint.checkpoint_files import CheckpointFiles
from drawdown.checkpoint.checksums import checksum_differs, checksum_path
from drawdown.checkpoint.fault import CheckpointFault, Kind, Part
from drawdown.checkpoint.file_log import FileLog, log_offset
from drawdown.checkpoint.log_text import parse_json, read_lines
from drawdown.checkpoint.offset_log import read_offsets
from drawdown.checkpoint.state_files import StateFiles, StoreFiles, cut_short, immutable_files
from drawdown.errors import RefusedError
from drawdown.storage import FileInfo, Storage

RESTORING, REWINDING = "restoring", "rewinding"
MARKS: Mapping[str, str] = {RESTORING: "restore", REWINDING: "rewind"}
"""Files that exist in a checkpoint while a command of several steps changes it, and that command.

The first line of such a file holds the command's arguments after the pipeline's name.
"""
_NEWEST_LOG_VERSION = 2


class Verification:
    """Verifies one checkpoint.

    Args:
        storage: the storage that holds the checkpoint.
        files: its files.
        stateful: whether its query keeps state, as far as that was recorded.
    """

    def __init__(
        self, storage: Storage, files: CheckpointFiles, *, stateful: bool = False, keyed: bool = False
    ) -> None:
        self._storage = storage
        self._path = files.path
        self._stateful = stateful
        self._keyed = keyed
        self._files = files

    def everything(self) -> list[CheckpointFault]:
        """Return the faults of all files, those that the next run needs first."""
        found = [*self._metadata(), *self._batches(), *self._sources(), *self._state(contents=True)]
        return sorted(found, key=lambda fault: not fault.needed)

    def restart(self) -> list[CheckpointFault]:
        """Return the faults of the files that the next run reads, without reading state: fast.

        Only presence and sizes of state files are checked, and only uncompacted entries of logs of files.
        """
        found = [*self._metadata(), *self._batches(history=False), *self._sources(history=False)]
        return [fault for fault in (*found, *self._state(contents=False)) if fault.needed]

    # Metadata, offsets, commits

    def _metadata(self) -> Iterator[CheckpointFault]:
        for mark, command in MARKS.items():
            path = f"{self._path}/{mark}"
            if self._storage.exists(path):
                yield CheckpointFault(
                    "metadata", "torn", path, f"a {command} was cut off before its end", True
                )
        path = f"{self._path}/metadata"
        if self._storage.exists(path):
            yield from _look(self._storage, _LogFile("metadata", path, True), self._files.query_id)
        elif self._files.last_offset_batch() is not None:
            yield CheckpointFault(
                "metadata", "missing", path, "the file with the query's id is missing", True
            )

    def _batches(self, *, history: bool = True) -> Iterator[CheckpointFault]:
        planned, committed = self._files.last_offset_batch(), self._files.last_commit_batch()
        read = {planned, committed}
        if planned is not None and planned != committed:
            read.add(planned - 1)
        for batch in self._files.offset_batches():
            if history or batch in read:
                path, needed = f"{self._path}/offsets/{batch}", batch in read
                log = _LogFile("offsets", path, needed, batch)
                yield from _look(self._storage, log, partial(read_offsets, self._storage, path))
        if committed is not None and committed not in self._files.offset_batches():
            path = f"{self._path}/offsets/{committed}"
            what = f"batch {committed} is committed, but the file with its offsets is missing"
            yield CheckpointFault("offsets", "missing", path, what, True, committed)
        for batch in self._files.commit_batches():
            if history or batch == committed:
                log = _LogFile("commits", f"{self._path}/commits/{batch}", batch == committed, batch)
                yield from _look(self._storage, log, partial(self._files.commit, batch))

    # Logs of files

    def _sources(self, *, history: bool = True) -> Iterator[CheckpointFault]:
        for source in sorted({*self._files.sources(), *self._read_sources()}):
            folder = f"{self._path}/sources/{source}"
            yield from verify_file_log(self._storage, folder, "sources", self._last_read(source), history)

    def _read_sources(self) -> list[str]:
        """Return the file sources that the newest readable offsets name: each must have a log."""
        for batch in reversed(self._files.offset_batches()):
            with suppress(RefusedError):
                offsets = self._files.offsets_by_folder(batch)
                return [source for source, offset in offsets.items() if log_offset(offset) is not None]
        return []

    def _last_read(self, source: str) -> int:
        """Return a file source's newest log entry that a batch has read; -1 for none or other sources."""
        for batch in reversed(self._files.offset_batches()):
            try:
                offset = log_offset(self._files.offsets_by_folder(batch).get(source))
            except RefusedError:
                continue
            return -1 if offset is None else offset
        return -1

    # State

    def _state(self, *, contents: bool) -> Iterator[CheckpointFault]:
        last = self._files.last_commit_batch()
        version = 0 if last is None else last + 1
        try:
            state = StateFiles.read(self._storage, self._path, keyed=self._keyed)
        except RefusedError as error:
            yield CheckpointFault("state", "torn", self._storage.relative(error.where), error.what, True)
            return
        if self._stateful and version and not state.stores:
            yield CheckpointFault(
                "state",
                "missing",
                f"{self._path}/state",
                "the state folder of the query is missing",
                True,
                version,
            )
        for store in state.stores.values():
            yield from self._store(store, version, contents)
        yield from self._without_their_file(state)
        for info in state.metadata if contents else []:
            content = self._storage.read_bytes(info.relative)
            if checksum_differs(self._storage, info.relative, content):
                yield CheckpointFault("state", "checksum", info.relative, "it is not what Spark wrote", True)

    def _without_their_file(self, state: StateFiles) -> Iterator[CheckpointFault]:
        """Yield checksums of missing operator files, beside which Spark cannot write the file again."""
        there = {info.relative for info in state.metadata}
        for path in state.checksums - {checksum_path(each) for each in there}:
            what = (
                "the file that this checksum belongs to is missing, and Spark does not create it while"
                " the checksum exists"
            )
            yield CheckpointFault("state", "torn", path, what, True)

    def _store(self, store: StoreFiles, version: int, contents: bool) -> Iterator[CheckpointFault]:
        needed, missing = store.needed(version)
        if missing:
            shown = f"version {missing[0]}" + (f" and {len(missing) - 1} more" if missing[1:] else "")
            path = f"{self._path}/state/{store.id.folder}"
            yield CheckpointFault(
                "state", "missing", path, f"{store.id}: there is no file of {shown}", True, missing[0]
            )
        kept = {info.relative for info in needed}
        for each, info in store.files():
            if not contents and info.relative not in kept:
                continue
            about = f"{store.id}, version {each}"
            for kind, why in self._state_file(store, info, contents):
                yield CheckpointFault(
                    "state", kind, info.relative, f"{about}: {why}", info.relative in kept, each
                )

    def _state_file(self, store: StoreFiles, info: FileInfo, contents: bool) -> Iterator[tuple[Kind, str]]:
        if info.size == 0:
            yield "torn", "it is empty"
            return
        is_zip = info.name.endswith(".zip")
        if not contents and not is_zip:
            return
        content = self._storage.read_bytes(info.relative)
        if is_zip:
            try:
                named = immutable_files(content)
            except ValueError as error:
                yield "torn", str(error)
                return
            yield from self._immutable(store, named, contents)
            if checksum_differs(self._storage, info.relative, content):
                yield "checksum", "the archive is whole, but its checksum does not match"
        elif checksum_differs(self._storage, info.relative, content):
            yield "torn", "it is not what Spark wrote: its checksum differs"
        elif why := cut_short(content):
            yield "torn", why

    def _immutable(
        self, store: StoreFiles, named: dict[str, int], contents: bool
    ) -> Iterator[tuple[Kind, str]]:
        for name, size in named.items():
            info = store.immutable.get(name)
            if info is None:
                yield "missing", f"{name}, which it consists of, is missing"
            elif info.size != size:
                yield "torn", f"{name}, which it is made of, has {info.size} bytes instead of {size}"
            elif contents and checksum_differs(
                self._storage, info.relative, self._storage.read_bytes(info.relative)
            ):
                yield "torn", f"{name}, which it consists of, is not what Spark wrote: its checksum differs"


def verify_file_log(
    storage: Storage, folder: str, part: Part, last: int = -1, history: bool = True
) -> Iterator[CheckpointFault]:
    """Yield the faults of a log of files: a source's, or a file sink's ``_spark_metadata``.

    Args:
        folder: relative to the storage root.
        last: the newest entry that a batch has read; every entry up to it must be there.
        history: also read compacted entries, and the entries they replace.
    """
    log = FileLog(storage, folder, {})
    base = log.compacted()
    names = log.names()
    for name, entry in names.items():
        needed = entry >= base
        if history or (needed and not name.endswith(".compact")):
            path = f"{folder}/{name}"
            yield from _look(storage, _LogFile(part, path, needed, entry), partial(_parse, storage, path))
    for entry in range(base + 1, last + 1):
        if str(entry) not in names:
            what = f"entry {entry}, which a batch has read, is missing"
            yield CheckpointFault(part, "missing", f"{folder}/{entry}", what, True, entry)


def _parse(storage: Storage, path: str) -> None:
    """Parse a log file of any source: a version, then lines of JSON; some sources begin with a zero byte."""
    if storage.read_bytes(path).startswith(b"\0"):
        return
    _, lines = read_lines(storage, path, _NEWEST_LOG_VERSION)
    for line in lines:
        parse_json(storage, path, line)


@dataclass(frozen=True)
class _LogFile:
    """A file to look at; its fields as in `CheckpointFault`."""

    part: Part
    path: str
    needed: bool
    number: int | None = None

    def fault(self, kind: Kind, what: str) -> CheckpointFault:
        return CheckpointFault(self.part, kind, self.path, what, self.needed, self.number)


def _look(storage: Storage, log: _LogFile, read: Callable[[], object]) -> Iterator[CheckpointFault]:
    """Yield the fault of one log file, if it has one."""
    try:
        read()
    except RefusedError as error:
        yield log.fault("torn", error.what)
        return
    if checksum_differs(storage, log.path, storage.read_bytes(log.path)):
        yield log.fault("checksum", "it can be read, but its checksum does not match, so Spark refuses it")
