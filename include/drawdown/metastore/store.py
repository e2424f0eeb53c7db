"""The metastore's API: opens the store, and runs each operation in one transaction.

Everything that belongs to a checkpoint is written under its lease: the transaction first locks and checks
the lease's row, so a stale holder changes nothing (RefusedError lease.lost). Any call can raise SourceError
metastore.locked or metastore.unreachable, or MachineError metastore.full; then the call wrote nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import Connection, Engine

from drawdown.errors import BusyError, RefusedError
from drawdown.metastore import operations
from drawdown.metastore.clock import read_clock
from drawdown.metastore.connect import WRITES, connect
from drawdown.metastore.migrate import prepare, upgrade
from drawdown.metastore.operations.announcements import Announcements
from drawdown.metastore.operations.applications import Applications, heard_of
from drawdown.metastore.operations.clusters import Clusters
from drawdown.metastore.operations.figures import FiguresTable
from drawdown.metastore.records import (
    Batch,
    Change,
    Checkpoint,
    HeldSlice,
    Lease,
    QuarantineDecision,
    Run,
    RunState,
    Side,
    StagedFile,
    Verdict,
)

P = ParamSpec("P")
R = TypeVar("R")


def reading(operation: Callable[Concatenate[Connection, P], R]) -> Callable[Concatenate[Metastore, P], R]:
    """Make the operation a method that runs in its own transaction and writes nothing."""

    @wraps(operation)
    def method(store: Metastore, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with store._engine.begin() as conn:
            return operation(conn, *args, **kwargs)

    return method


def writing(operation: Callable[Concatenate[Connection, P], R]) -> Callable[Concatenate[Metastore, P], R]:
    """Make the operation a method that runs in its own transaction and needs no lease."""

    @wraps(operation)
    def method(store: Metastore, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with store._writer.begin() as conn:
            return operation(conn, *args, **kwargs)

    return method


def under_lease(
    operation: Callable[Concatenate[Connection, str, P], R],
) -> Callable[Concatenate[Metastore, Lease, P], R]:
    """Make the operation on the lease's pipeline a method that runs in a fenced transaction.

    The method also raises RefusedError lease.lost.
    """

    @wraps(operation)
    def method(store: Metastore, lease: Lease, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with store.fenced(lease) as conn:
            return operation(conn, lease.pipeline, *args, **kwargs)

    return method


class Metastore:
    """Runs, batches, staged files, leases, checkpoints, maxima and verdicts of all pipelines of a project.

    Safe for several processes and threads. Do not use an open one after a fork. It works on one side of
    each pipeline: the generation in use or, with `of_rebuilds`, a rebuild's; each side has its own lease.
    """

    def __init__(self, engine: Engine, side: Side = "live") -> None:
        self._engine = engine
        self._writer = engine.execution_options(**WRITES)
        self._side: Side = side

    @property
    def of_rebuilds(self) -> Metastore:
        """Return the same open store for the shadow generations."""
        return Metastore(self._engine, "shadow")

    @classmethod
    def open(cls, url: str) -> Self:
        """Open the store at ``url`` (sqlite:///FILE or postgresql://...); create it if it does not exist.

        An older store is not migrated; only `upgrade` does that.

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
        """Migrate the store at ``url`` to this program's schema; create it if it does not exist.

        Returns its revisions before (None: there was no store) and after. Raises the errors of `open`,
        except metastore.older.
        """
        engine = connect(url)
        try:
            return upgrade(engine)
        finally:
            engine.dispose()

    def close(self) -> None:
        """Close the connections; leases stay in force until they are released or expire."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    now = reading(read_clock)

    # Leases

    def acquire(self, pipeline: str, holder: str, run_id: str, ttl: timedelta) -> Lease:
        """Take a pipeline's lease with the next epoch. Raises BusyError lease.held while it is held."""
        with self._writer.begin() as conn:
            outcome = operations.leases.acquire(conn, pipeline, holder, run_id, ttl, self._side)
        if isinstance(outcome, BusyError):
            raise outcome
        return outcome

    def renew(self, lease: Lease, ttl: timedelta) -> Lease:
        """Give the lease a new term from now. Raises RefusedError lease.lost."""
        with self.fenced(lease) as conn:
            heard_of(conn, lease.run_id)
            return operations.leases.renew(conn, lease, ttl)

    release = writing(operations.leases.release)

    def holder_of(self, pipeline: str) -> Lease | None:
        """Return the lease in force; None when the pipeline is free."""
        with self._engine.begin() as conn:
            return operations.leases.holder_of(conn, pipeline, self._side)

    @contextmanager
    def fenced(self, lease: Lease) -> Iterator[Connection]:
        """Run a transaction that locks the lease's row; it commits at the end and rolls back on an error.

        Raises RefusedError lease.lost when the lease was released or taken over. An expired lease that was
        not taken over may still be used: the epoch decides.
        """
        with self._writer.begin() as conn:
            operations.leases.check(conn, lease)
            yield conn

    def check_lease(self, lease: Lease) -> None:
        """Raise RefusedError lease.lost when the lease was released or taken over; takes no lock."""
        with self._engine.begin() as conn:
            operations.leases.check(conn, lease, lock=False)

    # Changes of sinks' tables

    def begin_change(self, lease: Lease, change: Change) -> Change:
        """Record a change as open, before any of its files is written. Raises RefusedError lease.lost."""
        with self.fenced(lease) as conn:
            return operations.changes.begin(conn, lease, change)

    end_changes = writing(operations.changes.end)
    open_changes = reading(operations.changes.read_open)
    states_of_changes = reading(operations.changes.read_states)

    # Checkpoints

    def create_checkpoint(
        self, lease: Lease, generation: int, path: str, fingerprint: dict[str, Any]
    ) -> Checkpoint:
        """Record a generation; recording it again is no error. Raises RefusedError checkpoint.exists."""
        with self.fenced(lease) as conn:
            return operations.checkpoints.create(
                conn, lease.pipeline, generation, path, fingerprint, self._side
            )

    set_query_id = under_lease(operations.checkpoints.set_query_id)
    update_fingerprint = under_lease(operations.checkpoints.update_fingerprint)
    note_judging = under_lease(operations.checkpoints.note_judging)
    note_begun = under_lease(operations.checkpoints.note_begun)
    note_claims = under_lease(operations.claims.note)

    def active_checkpoint(self, pipeline: str) -> Checkpoint | None:
        """Return the generation in use; None before the first run. Raises RefusedError rebuild.unfinished."""
        with self._engine.begin() as conn:
            return operations.checkpoints.active(conn, pipeline, self._side)

    generations = reading(operations.checkpoints.read)

    def next_generation(self, pipeline: str) -> int:
        """Return the number of the next generation; no number is used twice."""
        return max((each.generation for each in self.generations(pipeline)), default=0) + 1

    def change_generations(self, lease: Lease, changes: Mapping[int, Mapping[str, Any]]) -> None:
        """Change ``state``, ``rebuild`` or ``fingerprint`` of several generations in one transaction."""
        with self.fenced(lease) as conn:
            for generation, values in changes.items():
                operations.checkpoints.change(conn, lease.pipeline, generation, **values)

    maxima = reading(operations.checkpoints.read_maxima)
    export_generation = reading(operations.generations.export)
    replace_generation = under_lease(operations.generations.replace)
    forget_batches = under_lease(operations.generations.cut)

    # Batches

    def note_batch(
        self, lease: Lease, batch: Batch, files: Sequence[StagedFile], maxima: Mapping[str, datetime]
    ) -> None:
        """Record a batch, its files and event times, over what an earlier attempt recorded for its id.

        The batch's epoch is the lease's; maxima only grow. Raises RefusedError batch.published.
        """
        _same_pipeline(lease, batch.pipeline)
        with self.fenced(lease) as conn:
            operations.batches.note(conn, replace(batch, epoch=lease.epoch), files)
            operations.checkpoints.raise_maxima(conn, lease.pipeline, batch.generation, maxima)

    mark_committed = under_lease(operations.batches.mark_committed)

    def mark_published(
        self, lease: Lease, generation: int, batch_ids: Iterable[int], change_ids: Iterable[str] = ()
    ) -> None:
        """Change passed or held (after a release) -> published, and close the changes that published them.

        Raises RefusedError batch.unjudged.
        """
        with self.fenced(lease) as conn:
            ids = list(batch_ids)
            operations.batches.mark_published(conn, lease.pipeline, generation, ids)
            operations.runs.note_published(conn, lease.run_id, generation, ids)
            operations.changes.end(conn, change_ids, "committed")

    discard_batches = under_lease(operations.batches.discard)
    batch = reading(operations.batches.read_one)
    batches = reading(operations.batches.read)
    newest_batches = reading(operations.batches.read_newest)
    batches_by_runs = reading(operations.batches.read_by_runs)
    files_below = reading(operations.batches.read_files_below)
    last_shown = reading(operations.batches.last_shown)
    forget_files = under_lease(operations.batches.forget_files)
    batches_of_run = reading(operations.batches.read_of_run)
    staged_files = reading(operations.batches.read_files)

    # Files that sources have read

    note_read_files = under_lease(operations.read_files.note)
    forget_read_files = under_lease(operations.read_files.forget)
    read_files = reading(operations.read_files.read)
    move_files = under_lease(operations.moving.move_files)

    # Names

    names = reading(operations.names.known)
    rename = under_lease(operations.names.rename)
    forget = under_lease(operations.names.forget)

    # Decisions about rows of a quarantine

    def note_decision(self, lease: Lease, decision: QuarantineDecision) -> QuarantineDecision:
        """Record a decision; the rows that it covers are no longer open."""
        _same_pipeline(lease, decision.pipeline)
        with self.fenced(lease) as conn:
            return operations.decisions.note(conn, decision)

    decisions = reading(operations.decisions.read)
    executed_replays = reading(operations.decisions.read_executed)
    replays = reading(operations.decisions.read_replays)

    # Verdicts

    def record_verdict(self, lease: Lease, verdict: Verdict) -> Verdict:
        """Record a verdict; committed batches of its range become passed (pass, warn, empty), held (fail)."""
        _same_pipeline(lease, verdict.pipeline)
        with self.fenced(lease) as conn:
            return operations.verdicts.record(conn, verdict)

    verdicts = reading(operations.verdicts.read)

    def verdict_of(self, run: Run) -> Verdict | None:
        """Return the last verdict of a run of any age; None when no slice was audited."""
        return next(iter(self.verdicts_of(run, limit=1)), None)

    verdicts_of = reading(operations.verdicts.read_of)
    slice_history = reading(operations.verdicts.published_measures)

    def held_slices(self, pipeline: str) -> list[HeldSlice]:
        """Return the slices of the generation in use that wait for a release or discard, in order."""
        with self._engine.begin() as conn:
            checkpoint = operations.checkpoints.active(conn, pipeline, self._side)
            if checkpoint is None:
                return []
            held = operations.batches.read(conn, pipeline, checkpoint.generation, ("held",))
            return operations.verdicts.slices(conn, pipeline, held)

    # Runs

    @property
    def applications(self) -> Applications:
        """Return the operations on Spark applications: what they requested and used."""
        return Applications(self._engine, self._writer)

    @property
    def clusters(self) -> Clusters:
        """Return the operations on clusters that commands of the project have started."""
        return Clusters(self._engine, self._writer)

    @property
    def figures(self) -> FiguresTable:
        """Return the operations on what was last recorded of each pipeline."""
        return FiguresTable(self._engine, self._writer)

    @property
    def announcements(self) -> Announcements:
        """Return the operations on alerts: which were found, and who knows of them."""
        return Announcements(self._engine, self._writer)

    start_run = writing(operations.runs.start)

    def update_run(self, run_id: str, **values: Any) -> Run:
        """Change fields of a run, except identity, state and times. Raises RefusedError run.unknown."""
        with self._writer.begin() as conn:
            operations.runs.change(conn, run_id, values)
            return _known(operations.runs.read_one(conn, run_id), run_id)

    def finish_run(self, run_id: str, state: RunState, **values: Any) -> Run:
        """Close a run with its last fields, now, and return the record; a closed run stays as it is."""
        with self._writer.begin() as conn:
            operations.runs.finish(conn, run_id, state, values)
            heard_of(conn, run_id)
            return _known(operations.runs.read_one(conn, run_id), run_id)

    def crash_runs(self, lease: Lease) -> list[Run]:
        """Close the pipeline's runs that a dead holder left running; return them, oldest first."""
        with self.fenced(lease) as conn:
            return operations.runs.crash_others(conn, lease.pipeline, lease.run_id, self._side)

    def open_runs(self, pipeline: str) -> list[Run]:
        """Return the runs under this side's lease whose state is running."""
        with self._engine.begin() as conn:
            return operations.runs.read_open(conn, pipeline, self._side)

    crash_replays = writing(operations.runs.crash_replays)
    run = reading(operations.runs.read_one)
    published_at = reading(operations.runs.published_at)
    last_published = reading(operations.runs.last_published)
    published_after = reading(operations.runs.published_after)
    began_to_publish = reading(operations.runs.began_to_publish)
    began_to_succeed = reading(operations.runs.began_to_succeed)
    uncounted_watch = reading(operations.runs.read_uncounted)
    runs = reading(operations.runs.read)
    recent_runs = reading(operations.runs.read_recent)
    newest = reading(operations.runs.read_newest)
    runs_that_published = reading(operations.runs.read_published)
    runs_of_origin = reading(operations.runs.read_by_origin)


def _known(run: Run | None, run_id: str) -> Run:
    if run is None:
        raise RefusedError(
            "run.unknown",
            f"there is no run {run_id}",
            do="`drawdown runs` lists the runs",
        )
    return run


def _same_pipeline(lease: Lease, pipeline: str) -> None:
    # Replays of intervals have their own leases, named with a # after the pipeline.
    if lease.pipeline.partition("#")[0] != pipeline:
        raise ValueError(f"the lease of {lease.pipeline} does not cover {pipeline}")
