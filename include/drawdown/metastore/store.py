"""The metastore's front: opens the store, and gives each operation one transaction.

Everything that belongs to a checkpoint is written under its lease: the transaction first locks and checks
the lease's row, so a stale holder changes nothing (RefusedError lease.lost). Any call can raise SourceError
metastore.locked or metastore.unreachable, or MachineError metastore.full; then nothing of it was written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, Engine

from drawdown.errors import BusyError, RefusedError
from drawdown.metastore.clock import read_clock
from drawdown.metastore.connect import WRITES, connect
from drawdown.metastore.migrate import prepare, upgrade
from drawdown.metastore.operations import (
    batches,
    changes,
    checkpoints,
    decisions,
    generations,
    leases,
    moving,
    names,
    read_files,
    runs,
    verdicts,
)
from drawdown.metastore.operations.applications import Applications, heard_of
from drawdown.metastore.records import (
    Batch,
    BatchStatus,
    Change,
    ChangeState,
    Checkpoint,
    FileMark,
    HeldSlice,
    Lease,
    Newest,
    QuarantineDecision,
    Run,
    RunState,
    Side,
    StagedFile,
    StagedTable,
    Verdict,
)


class Metastore:
    """Runs, batches, staged files, leases, checkpoints, maxima and verdicts of all pipelines of a project.

    Safe for several processes and threads. Do not carry an open one across a fork. It speaks of one side
    of each pipeline: of the generation in use, or, as `of_rebuilds`, of a rebuild's; each has its lease.
    """

    def __init__(self, engine: Engine, side: Side = "live") -> None:
        self._engine = engine
        self._writer = engine.execution_options(**WRITES)
        self._side: Side = side

    @property
    def of_rebuilds(self) -> Metastore:
        """The same open store, speaking of the shadow generations."""
        return Metastore(self._engine, "shadow")

    @classmethod
    def open(cls, url: str) -> Self:
        """Opens the store at ``url`` (sqlite:///FILE or postgresql://...); makes it when there is none.

        An older store is not migrated: only `upgrade` does that.

        Raises SpecError metastore.url; SourceError metastore.unreachable, metastore.locked; MachineError
        metastore.foreign (holds something else), metastore.older, metastore.newer, metastore.unreachable,
        metastore.forbidden.
        """
        engine = connect(url)
        try:
            prepare(engine)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine)

    @staticmethod
    def upgrade(url: str) -> tuple[str | None, str]:
        """Migrates the store at ``url`` to this program's schema; makes it when there is none.

        Returns its revisions before (None: there was no store) and now. Raises what `open` does, but for
        metastore.older.
        """
        engine = connect(url)
        try:
            return upgrade(engine)
        finally:
            engine.dispose()

    def close(self) -> None:
        """Closes the connections; leases taken stay in force until released or expired."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def now(self) -> datetime:
        """The present time by the store's clock."""
        with self._engine.begin() as conn:
            return read_clock(conn)

    # Leases

    def acquire(self, pipeline: str, holder: str, run_id: str, ttl: timedelta) -> Lease:
        """Takes a pipeline's lease with the next epoch. Raises BusyError lease.held while another has it."""
        with self._writer.begin() as conn:
            outcome = leases.acquire(conn, pipeline, holder, run_id, ttl, self._side)
        if isinstance(outcome, BusyError):
            raise outcome
        return outcome

    def renew(self, lease: Lease, ttl: timedelta) -> Lease:
        """Gives the lease a new term from now. Raises RefusedError lease.lost."""
        with self.fenced(lease) as conn:
            heard_of(conn, lease.run_id)
            return leases.renew(conn, lease, ttl)

    def release(self, lease: Lease) -> None:
        """Gives the lease back; no error when it was lost meanwhile."""
        with self._writer.begin() as conn:
            leases.release(conn, lease)

    def holder_of(self, pipeline: str) -> Lease | None:
        """The lease in force, None when the pipeline is free."""
        with self._engine.begin() as conn:
            return leases.holder_of(conn, pipeline, self._side)

    @contextmanager
    def fenced(self, lease: Lease) -> Iterator[Connection]:
        """One transaction that holds the lease's row: commits at the end, rolls back on an error.

        Raises RefusedError lease.lost when the lease was released or taken over. A lease that expired and
        that nobody took may still be used: the epoch decides.
        """
        with self._writer.begin() as conn:
            leases.check(conn, lease)
            yield conn

    def check_lease(self, lease: Lease) -> None:
        """Raises RefusedError lease.lost when the lease was released or taken over; takes no lock."""
        with self._engine.begin() as conn:
            leases.check(conn, lease, lock=False)

    # Changes of sinks' tables

    def begin_change(self, lease: Lease, change: Change) -> Change:
        """Notes a change as under way, before any file of it is written. Raises RefusedError lease.lost."""
        with self.fenced(lease) as conn:
            return changes.begin(conn, lease, change)

    def end_changes(self, change_ids: Iterable[str], state: ChangeState) -> None:
        """Closes open changes. Needs no lease: the sink has said what became of them."""
        with self._writer.begin() as conn:
            changes.end(conn, change_ids, state)

    def open_changes(self, pipeline: str) -> list[Change]:
        """The changes of a pipeline's tables that nobody has closed, oldest first."""
        with self._engine.begin() as conn:
            return changes.read_open(conn, pipeline)

    def states_of_changes(self, change_ids: Iterable[str]) -> dict[str, ChangeState]:
        """What became of these changes; those that are not in the register are left out."""
        with self._engine.begin() as conn:
            return changes.read_states(conn, change_ids)

    # Checkpoints

    def create_checkpoint(
        self, lease: Lease, generation: int, path: str, fingerprint: dict[str, Any]
    ) -> Checkpoint:
        """Notes a generation; the same again is no error. Raises RefusedError checkpoint.exists."""
        with self.fenced(lease) as conn:
            return checkpoints.create(conn, lease.pipeline, generation, path, fingerprint, self._side)

    def set_query_id(self, lease: Lease, generation: int, query_id: str) -> None:
        """Notes Spark's query id, once. Raises RefusedError checkpoint.query-changed."""
        with self.fenced(lease) as conn:
            checkpoints.set_query_id(conn, lease.pipeline, generation, query_id)

    def update_fingerprint(self, lease: Lease, generation: int, fingerprint: dict[str, Any]) -> None:
        """Replaces a generation's fingerprint. Raises LookupError when there is no such generation."""
        with self.fenced(lease) as conn:
            checkpoints.update_fingerprint(conn, lease.pipeline, generation, fingerprint)

    def active_checkpoint(self, pipeline: str) -> Checkpoint | None:
        """The generation in use, None before the first run. Raises RefusedError rebuild.unfinished."""
        with self._engine.begin() as conn:
            return checkpoints.active(conn, pipeline, self._side)

    def generations(self, pipeline: str) -> list[Checkpoint]:
        """All generations that there ever were, oldest first."""
        with self._engine.begin() as conn:
            return checkpoints.read(conn, pipeline)

    def next_generation(self, pipeline: str) -> int:
        """The number of the generation that is made next; none comes twice."""
        return max((each.generation for each in self.generations(pipeline)), default=0) + 1

    def change_generations(self, lease: Lease, changes: Mapping[int, Mapping[str, Any]]) -> None:
        """Writes ``state``, ``rebuild`` or ``fingerprint`` of some generations, all at once."""
        with self.fenced(lease) as conn:
            for generation, values in changes.items():
                checkpoints.change(conn, lease.pipeline, generation, **values)

    def maxima(self, pipeline: str, generation: int) -> dict[str, datetime]:
        """Source name to the greatest event time it has shown."""
        with self._engine.begin() as conn:
            return checkpoints.read_maxima(conn, pipeline, generation)

    def export_generation(self, pipeline: str, generation: int) -> dict[str, list[dict[str, Any]]]:
        """Everything that belongs to a generation (batches, files, maxima), as JSON-ready rows by table."""
        with self._engine.begin() as conn:
            return generations.export(conn, pipeline, generation)

    def replace_generation(
        self, lease: Lease, generation: int, rows: dict[str, list[dict[str, Any]]], last_batch: int
    ) -> None:
        """Puts exported rows in place of a generation's; what was published or discarded up to
        ``last_batch`` stays so."""
        with self.fenced(lease) as conn:
            generations.replace(conn, lease.pipeline, generation, rows, last_batch)

    def forget_batches(self, lease: Lease, generation: int, last_batch: int) -> None:
        """Forgets every batch behind ``last_batch``: a rewound checkpoint plans their ids again."""
        with self.fenced(lease) as conn:
            generations.cut(conn, lease.pipeline, generation, last_batch)

    # Batches

    def note_batch(
        self, lease: Lease, batch: Batch, files: Sequence[StagedFile], maxima: Mapping[str, datetime]
    ) -> None:
        """Notes a batch, its files and event times, over what an earlier attempt noted for its id.

        The batch's epoch is the lease's; maxima only grow. Raises RefusedError batch.published.
        """
        _same_pipeline(lease, batch.pipeline)
        with self.fenced(lease) as conn:
            batches.note(conn, replace(batch, epoch=lease.epoch), files)
            checkpoints.raise_maxima(conn, lease.pipeline, batch.generation, maxima)

    def mark_committed(self, lease: Lease, generation: int, last_batch: int) -> None:
        """staged -> committed up to ``last_batch``, the last batch in Spark's commit log."""
        with self.fenced(lease) as conn:
            batches.mark_committed(conn, lease.pipeline, generation, last_batch)

    def mark_published(
        self, lease: Lease, generation: int, batch_ids: Iterable[int], change_ids: Iterable[str] = ()
    ) -> None:
        """passed or held (a person released it) -> published, by these changes, which are closed with it.

        Raises RefusedError batch.unjudged.
        """
        with self.fenced(lease) as conn:
            ids = list(batch_ids)
            batches.mark_published(conn, lease.pipeline, generation, ids)
            runs.note_published(conn, lease.run_id, generation, ids)
            changes.end(conn, change_ids, "committed")

    def discard_batches(self, lease: Lease, generation: int, batch_ids: Iterable[int]) -> None:
        """Any status but published -> discarded. Raises RefusedError batch.published."""
        with self.fenced(lease) as conn:
            batches.discard(conn, lease.pipeline, generation, batch_ids)

    def batch(self, pipeline: str, generation: int, batch_id: int) -> Batch | None:
        """One batch, None when nothing noted it."""
        with self._engine.begin() as conn:
            return batches.read_one(conn, pipeline, generation, batch_id)

    def batches(
        self,
        pipeline: str,
        generation: int,
        statuses: Iterable[BatchStatus] | None = None,
        *,
        first_batch: int = 0,
    ) -> list[Batch]:
        """Batches by id, of some statuses or all, from ``first_batch`` on. Reads only what it returns."""
        with self._engine.begin() as conn:
            return batches.read(conn, pipeline, generation, statuses, first_batch)

    def staged_files(
        self, pipeline: str, generation: int, batch_ids: Iterable[int], table: StagedTable | None = None
    ) -> list[tuple[int, StagedFile]]:
        """Pairs of batch id and file, ordered by batch id, table and path."""
        with self._engine.begin() as conn:
            return batches.read_files(conn, pipeline, generation, batch_ids, table)

    # Files that sources gave

    def note_read_files(
        self, lease: Lease, generation: int, source: str, files: Mapping[str, FileMark]
    ) -> None:
        """Keeps what files, by path, looked like when a batch read them, over what was kept of them."""
        with self.fenced(lease) as conn:
            read_files.note(conn, lease.pipeline, generation, source, files)

    def forget_read_files(self, lease: Lease, generation: int, source: str, paths: Collection[str]) -> None:
        """Forget these files, so that their current content is accepted at the next read."""
        with self.fenced(lease) as conn:
            read_files.forget(conn, lease.pipeline, generation, source, paths)

    def read_files(
        self, pipeline: str, generation: int, source: str, paths: Collection[str] | None = None
    ) -> dict[str, FileMark]:
        """What is kept of these files of a source, or of all; a file of before it was kept is not in it."""
        with self._engine.begin() as conn:
            return read_files.read(conn, pipeline, generation, source, paths)

    def move_files(self, lease: Lease, generation: int, roots: Iterable[tuple[str, str]]) -> int:
        """Let paths of files below one root be below another, by pairs of both; how many were."""
        with self.fenced(lease) as conn:
            return moving.move_files(conn, lease.pipeline, generation, roots)

    # Names

    def names(self) -> set[str]:
        """The pipelines that there is a checkpoint or a run of, whether they are in the project or not."""
        with self._engine.begin() as conn:
            return names.known(conn)

    def rename(self, lease: Lease, new: str, roots: Iterable[tuple[str, str]]) -> None:
        """Lets all of the lease's pipeline be another's, at once; its leases are free then.

        Paths that begin with one of `roots` begin with the other of the pair. Raises BusyError lease.held.
        """
        with self.fenced(lease) as conn:
            names.rename(conn, lease.pipeline, new, roots)

    def forget(self, lease: Lease) -> int:
        """Forgets all of the lease's pipeline, its leases too; how many rows. Raises BusyError lease.held."""
        with self.fenced(lease) as conn:
            return names.forget(conn, lease.pipeline)

    # Decisions about rows of a quarantine

    def note_decision(self, lease: Lease, decision: QuarantineDecision) -> QuarantineDecision:
        """Keeps what was decided; from here on the rows that it covers are not open any more."""
        _same_pipeline(lease, decision.pipeline)
        with self.fenced(lease) as conn:
            return decisions.note(conn, decision)

    def decisions(self, pipeline: str) -> list[QuarantineDecision]:
        """All decisions about a pipeline's quarantine, oldest first."""
        with self._engine.begin() as conn:
            return decisions.read(conn, pipeline)

    def executed_replays(self, pipeline: str) -> set[str]:
        """Decisions to replay rows whose batch has been executed."""
        with self._engine.begin() as conn:
            return decisions.read_executed(conn, pipeline)

    def replays(self, pipeline: str, generation: int, *, first_batch: int) -> list[QuarantineDecision]:
        """The replays whose rows go into batches of a generation, from ``first_batch`` on."""
        with self._engine.begin() as conn:
            return decisions.read_replays(conn, pipeline, generation, first_batch)

    # Verdicts

    def record_verdict(self, lease: Lease, verdict: Verdict) -> Verdict:
        """Keeps a verdict; committed batches of its range become passed (pass, warn, empty), held (fail)."""
        _same_pipeline(lease, verdict.pipeline)
        with self.fenced(lease) as conn:
            return verdicts.record(conn, verdict)

    def verdicts(self, pipeline: str, limit: int = 50) -> list[Verdict]:
        """The last verdicts, newest first."""
        with self._engine.begin() as conn:
            return verdicts.read(conn, pipeline, limit)

    def verdict_of(self, run: Run) -> Verdict | None:
        """The last verdict of a run, however old; None when it judged no slice."""
        return next(iter(self.verdicts_of(run, limit=1)), None)

    def verdicts_of(self, run: Run, limit: int = 50) -> list[Verdict]:
        """The last verdicts of a run, however old, newest first; a watch has one for each slice."""
        with self._engine.begin() as conn:
            return verdicts.read_of(conn, run.pipeline, run.run_id, limit)

    def slice_history(self, pipeline: str, wanted: Mapping[str, int]) -> list[dict[str, Any]]:
        """Measures of published slices, newest first, with which the next is compared.

        Args:
            wanted: by measure how many of its last values.
        """
        with self._engine.begin() as conn:
            return verdicts.published_measures(conn, pipeline, wanted)

    def held_slices(self, pipeline: str) -> list[HeldSlice]:
        """What of the generation in use waits for a person to release or discard it, in order."""
        with self._engine.begin() as conn:
            checkpoint = checkpoints.active(conn, pipeline, self._side)
            if checkpoint is None:
                return []
            held = batches.read(conn, pipeline, checkpoint.generation, ("held",), 0)
            return verdicts.slices(conn, pipeline, held)

    # Runs

    @property
    def applications(self) -> Applications:
        """What Spark applications asked for and used."""
        return Applications(self._engine, self._writer)

    def start_run(self, run: Run) -> Run:
        """Writes a run as running, now; needs no lease, so a refused run leaves a record too."""
        with self._writer.begin() as conn:
            return runs.start(conn, run)

    def update_run(self, run_id: str, **values: Any) -> Run:
        """Writes fields of a run, not its identity, state or times. Raises RefusedError run.unknown."""
        with self._writer.begin() as conn:
            runs.change(conn, run_id, values)
            return _known(runs.read_one(conn, run_id), run_id)

    def finish_run(self, run_id: str, state: RunState, **values: Any) -> Run:
        """Closes a run with its last fields, now; one closed already stays as it is. Returns the record."""
        with self._writer.begin() as conn:
            runs.finish(conn, run_id, state, values)
            heard_of(conn, run_id)
            return _known(runs.read_one(conn, run_id), run_id)

    def crash_runs(self, lease: Lease) -> list[Run]:
        """Closes the pipeline's runs that a dead holder left running; returns them, oldest first."""
        with self.fenced(lease) as conn:
            return runs.crash_others(conn, lease.pipeline, lease.run_id, self._side)

    def open_runs(self, pipeline: str) -> list[Run]:
        """The runs under this side's lease that say they are running."""
        with self._engine.begin() as conn:
            return runs.read_open(conn, pipeline, self._side)

    def crash_replays(self, run: Run) -> None:
        """Closes every open replay of the same interval as crashed; the caller has the interval's lease."""
        with self._writer.begin() as conn:
            runs.crash_replays(conn, run)

    def run(self, run_id: str) -> Run | None:
        """One run, None when there is none of that id."""
        with self._engine.begin() as conn:
            return runs.read_one(conn, run_id)

    def last_published(self, pipeline: str) -> datetime | None:
        """When a run last made rows visible; when the first run began if none has, None before it."""
        with self._engine.begin() as conn:
            return runs.last_published(conn, pipeline)

    def uncounted_watch(self, pipeline: str, generation: int) -> Run | None:
        """The newest uncounted watch over a generation that began after the run of its last noted batch."""
        with self._engine.begin() as conn:
            return runs.read_uncounted(conn, pipeline, generation)

    def runs(self, pipeline: str | None = None, limit: int = 50) -> list[Run]:
        """The last runs of a pipeline, or of all, newest first."""
        with self._engine.begin() as conn:
            return runs.read(conn, pipeline, limit)

    def newest(self, pipeline: str) -> Newest | None:
        """The newest run that reads, and what runs of before it have left; None before the first."""
        with self._engine.begin() as conn:
            return runs.read_newest(conn, pipeline)

    def runs_that_published(self, pipeline: str, since: datetime | None = None) -> list[Run]:
        """The runs, begun at `since` or later, that made batches of their own or of others visible, oldest
        first; none of before that was noted."""
        with self._engine.begin() as conn:
            return runs.read_published(conn, pipeline, since)

    def runs_of_origin(
        self, origin: Mapping[str, Any], *, pipeline: str | None = None, kinds: Collection[str] = ()
    ) -> list[Run]:
        """Every run, however old, whose origin has these values, newest first; of these kinds, or of all."""
        with self._engine.begin() as conn:
            return runs.read_by_origin(conn, origin, pipeline, kinds)


def _known(run: Run | None, run_id: str) -> Run:
    if run is None:
        raise RefusedError(
            "run.unknown",
            f"there is no run {run_id}",
            do="see `drawdown runs` for the runs there are",
        )
    return run


def _same_pipeline(lease: Lease, pipeline: str) -> None:
    # Replays of intervals have leases of their own, behind a #.
    if lease.pipeline.partition("#")[0] != pipeline:
        raise ValueError(f"the lease of {lease.pipeline} does not cover {pipeline}")
