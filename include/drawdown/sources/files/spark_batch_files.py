"""Check the files of a batch before it runs: they exist, are complete, and did not change between attempts.

FileStreamSource lists a batch's files with checkFilesExist=false, so a missing file is no error (Spark 4.2):
a file deleted between its discovery and its batch would count as read, and its rows would be lost. A file
that is deleted after the listing fails the read itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from drawdown.checkpoint import SeenFile, log_offset
from drawdown.errors import RefusedError, SourceError
from drawdown.fault_points import durable
from drawdown.metastore.records import FileMark, Lease
from drawdown.plan_verdicts import PlanVerdict
from drawdown.sources.files.cleaned_places import refuse_foreign_files
from drawdown.sources.files.new_files import CLOCK_SKEW_MS, differs
from drawdown.sources.files.oversized import oversized
from drawdown.sources.files.schema_drift import drift_of
from drawdown.sources.files.set_aside import read_set_aside
from drawdown.sources.files.spark_trouble import FileTrouble, named
from drawdown.spec import Source
from drawdown.storage import FileInfo, Storage
from drawdown.values.commands import set_aside_files
from drawdown.values.text import counted
from drawdown.workspace import Generation

NAMES = 20
"""Files that a batch's record names: the record of a batch of thousands stays small."""


@dataclass
class BatchFiles:
    """Checks the files of each batch of a run.

    Attributes:
        source_order: names by the sources' numbers in the checkpoint.
        trouble: what the plan found, so that nothing is reported twice.
        wait: waits this many seconds, or until the run is asked to stop; returns whether it was.
        tell: called with each warning with which the run continues.
        of_batch: by source, the paths of the files of the last batch that was checked.
        amounts: by source, how many `files` and `bytes` these are, and the `names` of the first NAMES, paths
            in the storage.
        began_ms: when the query started, milliseconds since 1970 UTC: it then lists the files of a batch that
            was planned before again.
    """

    generation: Generation
    source_order: Sequence[str]
    trouble: FileTrouble
    wait: Callable[[float], bool]
    tell: Callable[[PlanVerdict], None]
    of_batch: dict[str, list[str]] = field(default_factory=dict)
    amounts: dict[str, dict[str, Any]] = field(default_factory=dict)
    began_ms: float = field(default_factory=lambda: time.time() * 1_000)

    def look(self, lease: Lease, before: Sequence[Any], now: Sequence[Any], replayed: bool) -> str | None:
        """Check the files between two offsets, and record those that no attempt has read before.

        Args:
            before, now: offsets of the batch before (empty for none) and of this one, by number.
            replayed: whether an earlier run planned the batch.

        Returns:
            Why the run must end here and leave the batch to the next; None to continue.

        Raises:
            SourceError: ``source.gone``: a file no longer exists.
            RefusedError: ``source.rewritten``, ``source.oversized``, ``source.drift``, by the policy;
                ``source.not-its-own``: cleaning would touch what belongs to something else.
        """
        self.of_batch.clear()
        self.amounts.clear()
        for folder, name in enumerate(dict.fromkeys(self.source_order)):
            number = self.source_order.index(name)
            start, end = log_offset(before[number] if before else None), log_offset(now[number])
            if end is None:
                continue
            seen = self.generation.files.source_files(folder, 0 if start is None else start + 1, end)
            source = self.generation.pipeline.sources.get(name.split("@")[0])
            if source is None:
                continue
            refuse_foreign_files(self.generation, name.split("@")[0], [file.path for file in seen])
            there = self._there(name, source, seen)
            if not there:
                continue
            reason = self._settled(source, name, seen, there, replayed)
            storage = Storage.of_source(self.generation.project, source)
            self.amounts[name] = {
                "files": len(there),
                "bytes": sum(info.size for info in there.values()),
                "names": [storage.relative(path) for path in islice(there, NAMES)],
            }
            if reason is None:
                self._unchanged(lease, name.split("@")[0], source, there)
                reason = self._sizes(name.split("@")[0], source, there)
                reason = reason or self._columns(name.split("@")[0], source, there)
            if reason is not None:
                return reason
        return None

    def _there(self, name: str, source: Source, seen: Sequence[SeenFile]) -> dict[str, FileInfo]:
        storage = Storage.of_source(self.generation.project, source)
        found = {file.path: storage.info(storage.relative(file.path)) for file in seen}
        gone = [path for path, info in found.items() if info is None]
        pipeline = self.generation.pipeline.name
        if gone:
            aside = read_set_aside(self.generation.storage, pipeline, name.split("@")[0])
            gone = [path for path in gone if storage.relative(path) not in aside]
        if gone:
            raise SourceError(
                "source.gone",
                f"gone: {counted(len(gone), 'file')} of the batch: {named(gone)}",
                where=f"pipeline {pipeline}, source {name}",
                do=f"bring them back with their times (`cp -p`), then `drawdown run {pipeline}`: the batch"
                f" keeps its files until it is committed; or, if they are lost,"
                f" {set_aside_files(pipeline, gone, 'takes it out of the batch')}",
            )
        return {path: info for path, info in found.items() if info is not None}

    def _settled(
        self,
        source: Source,
        name: str,
        seen: Sequence[SeenFile],
        there: dict[str, FileInfo],
        replayed: bool,
    ) -> str | None:
        """Wait until no file is younger than ``settle``; return why the batch is left to the next run.

        Spark keeps the size of a file from its listing, so a file that grew since must be listed again.
        """
        if source.settle is None:
            return None
        now_ms = time.time() * 1_000
        past = [info.mtime_ms for info in there.values() if info.mtime_ms <= now_ms + CLOCK_SKEW_MS]
        left = max(past, default=0) / 1_000 + source.settle.delta.total_seconds() - now_ms / 1_000
        if left > 0 and self.wait(left):
            return "asked to stop"
        there |= self._there(name, source, seen)
        listed = {file.path: file.timestamp_ms for file in seen}
        growing = [
            path
            for path, info in there.items()
            if (info.mtime_ms >= self.began_ms if replayed else info.mtime_ms != listed[path])
        ]
        return (
            f"{named(growing)} of {name} was still being written: left for the next run" if growing else None
        )

    def let_be_changed(self, lease: Lease) -> None:
        """Accept changed files in the next attempt of a batch that failed because of its data."""
        for name, paths in self.of_batch.items():
            self.generation.metastore.forget_read_files(lease, self.generation.number, name, paths)

    def _unchanged(self, lease: Lease, name: str, source: Source, there: Mapping[str, FileInfo]) -> None:
        generation = self.generation.number
        self.of_batch[name] = list(there)
        marks = self.generation.metastore.read_files(
            self.generation.pipeline.name, generation, name, list(there)
        )
        changed = [path for path, info in there.items() if path in marks and differs(info, marks[path])]
        if changed:
            what = f"source {name}: {named(changed)} changed since a batch read it, and is read again"
            if source.policy.rewritten != "warn":
                raise RefusedError(
                    "source.rewritten",
                    f"{what}: the batch would have other rows",
                    where=f"pipeline {self.generation.pipeline.name}, source {name}",
                    do="restore the old file; `policy: {{rewritten: warn}}` reads the new content",
                )
            self.tell(PlanVerdict("warning", "source.rewritten", what, about=name))
        new = {
            path: FileMark(info.size, info.mtime_ms)
            for path, info in there.items()
            if path not in marks or path in changed
        }
        if new:
            with durable("batch.files"):
                self.generation.metastore.note_read_files(lease, generation, name, new)

    def _sizes(self, name: str, source: Source, there: Mapping[str, FileInfo]) -> str | None:
        """Measure the files that arrived after the plan; it has measured the others."""
        looked, bounds = self.trouble.looked.get(name, set()), self.generation.pipeline.bounds_of(name)
        storage = Storage.of_source(self.generation.project, source)
        for path, info in there.items():
            why = None if path in looked else oversized(storage, source, info, bounds)
            if why is not None:
                return (
                    f"source {name}: {path} is beyond the limits: {why}; it came after the run began, so"
                    " the next one deals with it"
                )
        return None

    def _columns(self, name: str, source: Source, there: Mapping[str, FileInfo]) -> str | None:
        """Check the columns of files that arrived after the plan; it has checked the others."""
        looked = self.trouble.looked.get(name, set())
        for path, info in there.items():
            columns = self.trouble.columns.get(name)
            drift = (
                drift_of(Storage.of_source(self.generation.project, source), source, info, columns)
                if columns and path not in looked
                else None
            )
            if drift is None:
                continue
            what = f"source {name}: {path} does not have the columns of the schema: {drift.what}"
            if source.policy.drift == "quarantine" and drift.readable:
                return f"{what}; it came after the run began, the next one sets it aside"
            if source.policy.drift == "fail" or not drift.readable:
                raise RefusedError(
                    "source.drift",
                    what,
                    where=f"pipeline {self.generation.pipeline.name}, source {name}",
                    do="fix the file, or move it away, and run again",
                )
            self.tell(PlanVerdict("warning", "source.drift", what, about=name))
        return None
