"""The upkeep of one pipeline, under its lease, so that no drain is active:

1  skip while a run is active, and after a crashed run until the next drain has reconciled it
2  prune the checkpoint, its snapshots and kept copies (`drawdown checkpoint prune`)
3  remove rows of the quarantine, and values in verdicts, errors and alerts, that are older than `retention:`
4  compact the output and the quarantine, if there are enough small files
5  remove files of both that are no longer needed
6  prune the metastore
7  write a run record, if anything was done

Each step can be repeated: if killed, the next upkeep continues, and runs are not affected.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from drawdown.changes.protocol import conflicts_explained
from drawdown.checkpoint import delete_with_checksum
from drawdown.delta.log import TableLog
from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import BusyError, DrawdownError, RefusedError
from drawdown.fault_points import durable
from drawdown.metastore import Metastore
from drawdown.metastore.lease_heartbeat import LeaseHeartbeat
from drawdown.metastore.operations.pruning import prune_records, strip_values
from drawdown.metastore.records import Change, ChangeKind, Lease, Run, RunState, StagedTable
from drawdown.plan.table_readers import Readers
from drawdown.quarantine import other_bytes
from drawdown.recovery.prune import Pruned, prunable, remove
from drawdown.recovery.repair.faults import restart_faults
from drawdown.recovery.repair.older_metastore import refuse_older_metastore
from drawdown.sinks.locations import output_uri, quarantine_uri
from drawdown.spec import Pipeline
from drawdown.storage import FileInfo
from drawdown.upkeep.compaction import Compacted, compact
from drawdown.upkeep.expired_rows import expired, remove_expired
from drawdown.upkeep.leftovers import leftovers
from drawdown.upkeep.needed_versions import Needed, oldest_needed
from drawdown.upkeep.record_retention import retention_of
from drawdown.upkeep.vacuum import unneeded_files
from drawdown.values.text import counted
from drawdown.workspace import Generation, Workspace

KIND = "upkeep"
"""The kind in run records."""

KEPT_COPIES = 3
"""The number of newest snapshots, and of copies made by repairs, to keep."""


@dataclass(frozen=True)
class UpkeepRequest:
    """A request for upkeep; with `dry` everything is found but nothing changed."""

    run_id: str
    holder: str
    origin: Mapping[str, Any]
    dry: bool = False


@dataclass
class Tidied:
    """What was done for one pipeline, or would be with `dry`.

    Attributes:
        compacted: by table; with `dry` the files after it are not known, and 0.
        vacuumed: by table, the removed files.
        pruned: what `drawdown checkpoint prune` removes, by type.
        expired: quarantined rows removed by `retention:`, by state.
        records: rows of the metastore by table.
        stripped: records of the metastore that lost the values of rows in them, by table.
        notes: sentences about what was skipped, and why.
        error: the error that ended it early.
    """

    pipeline: str
    compacted: dict[StagedTable, Compacted] = field(default_factory=dict)
    vacuumed: dict[StagedTable, list[FileInfo]] = field(default_factory=dict)
    pruned: Pruned = field(default_factory=lambda: Pruned({}))
    expired: dict[str, int] = field(default_factory=dict)
    records: dict[str, int] = field(default_factory=dict)
    stripped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    error: DrawdownError | None = None

    @property
    def files(self) -> int:
        """Files removed."""
        return self.pruned.files + sum(len(infos) for infos in self.vacuumed.values())

    @property
    def bytes(self) -> int:
        """Their bytes."""
        return self.pruned.bytes + sum(info.size for infos in self.vacuumed.values() for info in infos)

    @property
    def rows(self) -> int:
        """Rows removed from the metastore."""
        return sum(self.records.values())

    @property
    def said(self) -> str:
        """Return one sentence; empty if nothing was done."""
        parts = [
            f"{counted(done.before, 'file')} of the {table} became {done.after:,}"
            for table, done in self.compacted.items()
            if done.before
        ]
        if self.files:
            parts.append(f"removed {counted(self.files, 'file')}, {counted(self.bytes, 'byte')}")
        if self.expired:
            states = ", ".join(f"{rows:,} {state}" for state, rows in sorted(self.expired.items()))
            parts.append(f"removed quarantined rows: {states}")
        if self.stripped:
            parts.append(f"removed row values from {counted(sum(self.stripped.values()), 'record')}")
        if self.rows:
            parts.append(f"removed {counted(self.rows, 'record')}")
        return "; ".join(parts)


def tidy(workspace: Workspace, pipeline: Pipeline, readers: Readers, asked: UpkeepRequest) -> Tidied:
    """Tidy a pipeline, in the steps of this module's docstring; errors of this pipeline are in the result.

    Args:
        pipeline: the version in use.
        readers: the readers of all tables of the project.
    """
    tidied = Tidied(pipeline.name)
    ttl = workspace.project.lease_ttl.delta
    try:
        lease = workspace.metastore.acquire(pipeline.name, asked.holder, asked.run_id, ttl)
        with LeaseHeartbeat(workspace.metastore, lease, ttl) as heartbeat:
            generation = Generation.of(workspace, pipeline)
            if _stands_aside(generation, tidied):
                return tidied

            def current() -> Lease:
                heartbeat.check()
                return heartbeat.lease

            _Work(generation, readers, asked, current, tidied).run()
    except BusyError as busy:
        tidied.notes.append(f"skipped until the next upkeep: {busy.what}")
    except DrawdownError as error:
        tidied.error = error
    if tidied.error is not None or (tidied.said and not asked.dry):
        _record(workspace.metastore, tidied, asked)
    return tidied


def _stands_aside(generation: Generation, tidied: Tidied) -> bool:
    name = generation.pipeline.name
    if generation.checkpoint is None:
        return True
    for run in generation.metastore.open_runs(name):
        what = f"skipped until the next upkeep: run {run.run_id} died, and the next drain cleans up after it"
        tidied.notes.append(f"{what}: drawdown run {name}")
        return True
    try:
        refuse_older_metastore(generation)
    except RefusedError as error:
        tidied.notes.append(f"not changed: {error.what}: {error.do}")
        return True
    for fault in restart_faults(generation):
        if fault.needed:
            what = f"not changed: its checkpoint is damaged ({fault.what})"
            tidied.notes.append(f"{what}: drawdown checkpoint verify {name}")
            return True
    return False


def _record(metastore: Metastore, tidied: Tidied, asked: UpkeepRequest) -> None:
    """Write the record only at the end: an unfinished record would make the next drain look for leftovers."""
    kept = Run(asked.run_id, tidied.pipeline, kind=KIND, holder=asked.holder, origin=dict(asked.origin))
    metastore.start_run(kept)
    error = tidied.error.as_dict() if tidied.error else None
    state: RunState = "failed" if error else "succeeded"
    metastore.finish_run(asked.run_id, state, stop_reason=tidied.said or None, error=error)


@dataclass(frozen=True)
class _Work:
    generation: Generation
    readers: Readers
    asked: UpkeepRequest
    current: Callable[[], Lease]
    tidied: Tidied

    @cached_property
    def now(self) -> datetime:
        return self.generation.metastore.now()

    def run(self) -> None:
        self._prune()
        for table, files in self._tables():
            if table == "quarantine":
                self._expire(files)
            self._compact(table, files)
            self._vacuum(table, files)
        limit = self.generation.pipeline.retained.verdicts
        with durable("upkeep.records"):
            if limit is not None:
                self.tidied.stripped = strip_values(
                    self.generation.metastore, self.current(), limit.delta, dry=self.asked.dry
                )
            self.tidied.records = prune_records(
                self.generation.metastore,
                self.current(),
                retention_of(self.generation),
                dry=self.asked.dry,
            )

    def _tables(self) -> Iterator[tuple[StagedTable, DeltaTableFiles]]:
        """Yield the pipeline's Delta tables, except one that replaced its own."""
        project, pipeline = self.generation.project, self.generation.pipeline
        quarantine = DeltaTableFiles(quarantine_uri(project, pipeline))
        if quarantine.exists():
            yield "quarantine", quarantine
        checkpoint = self.generation.checkpoint
        if pipeline.sink.format != "delta" or checkpoint is None:
            return
        output = DeltaTableFiles(output_uri(project, pipeline))
        if output.exists() and output.table_id == checkpoint.fingerprint.get("sink.identity"):
            yield "output", output

    def _prune(self) -> None:
        found = prunable(self.generation, keep=KEPT_COPIES, named=self._named)
        old = leftovers(self.generation, self.now)
        self.tidied.pruned = Pruned({**found.removed, "replays": old} if old else found.removed)
        if not self.asked.dry:
            with durable("upkeep.prune"):
                remove(self.generation, self.tidied.pruned, self.current)

    def _named(self, uri: str) -> set[str]:
        """Return all files of a table that a readable version names."""
        table: StagedTable = "output"
        if uri == quarantine_uri(self.generation.project, self.generation.pipeline):
            table = "quarantine"
        log = TableLog(self.generation.storage, uri)
        needed = self._needed(table, log)
        return log.named_since(0 if needed is None else needed.version)

    def _expire(self, files: DeltaTableFiles) -> None:
        limits = self.generation.pipeline.retained
        if limits.quarantine is None and limits.quarantine_open is None:
            return
        found = expired(self.generation, self.now)
        for why, rows in sorted(found.stay.items()):
            what = f"older than `retention:` and kept: {counted(rows, 'row')} of the quarantine"
            self.tidied.notes.append(f"{what}: {why}")
        if not found.keys and not found.replays:
            return
        readers = sorted({*self.readers.needed.get(files.table_id, ()), *self.readers.unknown})
        if readers:
            # A stream over the table ends when rows are deleted.
            what = f"older than `retention:` and kept: {counted(len(found.keys), 'row')} of the quarantine"
            self.tidied.notes.append(f"{what}: it is streamed, or may be, by {', '.join(readers)}")
            return
        self.tidied.expired = dict(found.rows)
        if self.asked.dry:
            return
        lease, begun = self.current(), list[Change]()

        def begin(based_on: int) -> Change:
            change = self._change(lease, "quarantine", "retention", based_on)
            begun.append(self.generation.metastore.begin_change(lease, change))
            return begun[-1]

        with conflicts_explained(lease.pipeline, "quarantine"):
            remove_expired(self.generation, files, found, begin)
        self.generation.metastore.end_changes([change.change_id for change in begun], "committed")

    def _change(self, lease: Lease, table: StagedTable, kind: ChangeKind, based_on: int) -> Change:
        return Change(
            uuid.uuid4().hex, lease.pipeline, table, self.generation.number, kind, self.asked.run_id,
            based_on=based_on,
        )  # fmt: skip

    def _compact(self, table: StagedTable, files: DeltaTableFiles) -> None:
        """A replay that commits meanwhile would have to start again, so its lease is taken first."""
        metastore, asked = self.generation.metastore, self.asked
        turn, ttl = f"{self.generation.pipeline.name}#replay", self.generation.project.lease_ttl.delta
        try:
            replays = metastore.acquire(turn, asked.holder, asked.run_id, ttl)
        except BusyError:
            self.tidied.notes.append(f"the {table} is not compacted: a replay is being committed")
            return
        lease, begun = self.current(), list[Change]()

        def begin(based_on: int) -> Change:
            change = self._change(lease, table, "compaction", based_on)
            begun.append(metastore.begin_change(lease, change))
            return begun[-1]

        with LeaseHeartbeat(metastore, replays, ttl), conflicts_explained(lease.pipeline, table):
            once = files.compact
            if table == "quarantine":
                once = partial(other_bytes.compact, self.generation.storage, files)
            done = compact(files, begin, once, dry=asked.dry)
        metastore.end_changes([change.change_id for change in begun], "committed")
        if done.before:
            self.tidied.compacted[table] = done

    def _vacuum(self, table: StagedTable, files: DeltaTableFiles) -> None:
        log = TableLog(self.generation.storage, files.uri)
        needed = self._needed(table, log)
        if needed is None:
            some = ", ".join(f"{name} ({why})" for name, why in self.readers.unknown.items())
            what = f"files of the {table} stay: it is unknown which versions are still read by"
            self.tidied.notes.append(f"{what} {some}")
            return
        old = unneeded_files(self.generation, log, needed, self.now)
        if needed.do:
            what = f"the {table} keeps its versions from {needed.version} on for {needed.by}"
            self.tidied.notes.append(f"{what}: {needed.do}")
        if old:
            self.tidied.vacuumed[table] = old
        if old and not self.asked.dry:
            with durable("upkeep.vacuum"):
                for info in old:
                    self.current()
                    delete_with_checksum(self.generation.storage, info.relative)

    def _needed(self, table: StagedTable, log: TableLog) -> Needed | None:
        if self.readers.unknown:
            return None
        return oldest_needed(self.generation, table, log, self.readers, self.now)
