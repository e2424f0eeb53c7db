"""The protocol between publishing and a sink: which batches it has, and making staged batches visible.

A sink that stages has one Target, named by the `target` of its `SinkKind` (kinds.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from drawdown.errors import SourceError
from drawdown.metastore.records import Change, Lease, StagedFile, StagedTable
from drawdown.values.interval import Interval


@dataclass(frozen=True)
class Staged:
    """The input of one publish: the new batches' ids in order, and their files by batch id."""

    batch_ids: Sequence[int]
    files: Sequence[tuple[int, StagedFile]]


@dataclass(frozen=True)
class Commit:
    """The metadata of a commit.

    Attributes:
        app_id: see `transaction_id`.
        version: the last batch in it.
        change: the registered change that it carries out.
        once: a transaction id of this commit alone, kept beside app_id by a sink that adds rows out of
            order; None if the version shows whether it was made.
        still_ours: raises RefusedError ``lease.lost`` when the lease was lost; called before each commit by a
            Target that needs several.
    """

    app_id: str
    version: int
    change: Change
    still_ours: Callable[[], None] = lambda: None
    once: str | None = None

    @property
    def epoch(self) -> int:
        """Return the epoch of the lease; sinks that can refuse one smaller than they have seen of this lease.

        Of another lease of the pipeline (`lease_purpose`) an epoch says nothing: each lease counts by itself.
        """
        return self.change.epoch


class ChangedMeanwhileError(Exception):
    """A concurrent commit changed the table since it was read; nothing was written, read it again."""


class Target(Protocol):
    """A sink as publishing sees it, read once; make a new Target to read it again.

    The sink's own transaction fences a stale lease holder, never a metastore lock: a change is registered
    *after* the first read, and a commit fails if the successor, which closes open changes, has called `fence`
    since then.
    """

    @property
    def based_on(self) -> int | None:
        """Return the Delta table version that was read; None for other sinks."""

    def published_batch(self, app_id: str) -> int:
        """Return the last batch that is completely visible, or -1. Raises SourceError if unreachable."""

    def begun_batch(self, app_id: str) -> int:
        """Return the last batch that is at least partly visible."""

    def make_visible(self, staged: Staged, commit: Commit) -> None:
        """Make these batches visible; repeated calls write each row only once.

        Raises:
            ChangedMeanwhileError: it was changed since the first look.
            SourceError: the sink cannot be reached or written; the call can be repeated.
            RefusedError: ``lease.lost``: a newer holder has written.
        """

    def holds(self, change: Change, app_id: str) -> bool:
        """Whether an earlier holder's change is in the sink. Raises SourceError."""

    def fence(self, lease: Lease) -> None:
        """Prevent commits of changes begun under an older epoch of this lease."""


@dataclass(frozen=True)
class NewRows:
    """Recomputed rows of one event-time interval.

    Attributes:
        files: parquet files with all of them.
        column: of the sink; says which interval a row belongs to.
        app_id: see `transaction_id`.
        lease: the name of the lease under which replays commit.
        overtaken: takes the last visible batch; returns whether a batch up to it may have added rows of the
            interval that are missing here.
        begin: registers the change, given the version it is based on; called after the read.
        info: entries for the sink's history, if it keeps one.
    """

    interval: Interval
    files: Sequence[StagedFile]
    column: str
    app_id: str
    lease: str
    overtaken: Callable[[int], bool]
    begin: Callable[[int | None], Change]
    info: Mapping[str, str]


@runtime_checkable
class Replaceable(Target, Protocol):
    """A sink that can replace one interval."""

    def replace(self, new: NewRows) -> bool:
        """Replace the rows of the interval in one commit, with no publish in between.

        Returns:
            False if the rows were overtaken: nothing is changed.

        Raises:
            RefusedError: ``lease.lost``: a newer holder of the lease has fenced this one.
            SourceError: the sink cannot be reached or written; the call can be repeated.
        """


def transaction_id(pipeline: str, generation: int, table: StagedTable) -> str:
    """Return the id under which a sink keeps the last batch that a pipeline committed to one table.

    It uses the pipeline's `name_in_sink`, which a rename does not change.

    It includes the generation: sinks skip batch ids they have seen, and a new generation counts from 0.
    """
    return f"drawdown/{pipeline}/{generation}/{table}"


@contextmanager
def conflicts_explained(pipeline: str, table: StagedTable) -> Iterator[None]:
    """Convert a conflict to SourceError ``sink.conflict`` where a commit is not tried again."""
    try:
        yield
    except ChangedMeanwhileError as conflict:
        raise SourceError(
            "sink.conflict",
            f"the {table} of {pipeline} was changed while it was written: {conflict}",
            where=f"pipeline {pipeline}",
            do="find out who else writes to that table, then run again: nothing was changed",
        ) from None


def fence_id(lease: str) -> str:
    """Return the transaction id of every Delta commit under a lease: two of these commits conflict if the
    later did not see the earlier (Delta's protocol, ConcurrentTransactionException)."""
    return f"drawdown/{lease}/fence"


def info_of(change: Change) -> dict[str, str]:
    """Return a commit's entry in the table history: enough to restore the register from it."""
    return {
        "drawdown.pipeline": change.pipeline,
        "drawdown.run": change.run_id,
        "drawdown.change": change.change_id,
        "drawdown.kind": change.kind,
        "drawdown.generation": str(change.generation),
        "drawdown.scope": json.dumps(change.scope, separators=(",", ":")),
    }
