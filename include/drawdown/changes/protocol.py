"""What publishing asks of a sink: how far it has come, and to make staged batches visible.

Adding a sink that stages means one Target, and one line in targets.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from drawdown.errors import SourceError
from drawdown.metastore.records import Change, Lease, StagedFile, StagedTable
from drawdown.values.interval import Interval


@dataclass(frozen=True)
class Staged:
    """What one publish has before it: the new batches' ids in order, and their files by batch id."""

    batch_ids: Sequence[int]
    files: Sequence[tuple[int, StagedFile]]


@dataclass(frozen=True)
class Commit:
    """What a commit says of itself.

    Attributes:
        app_id: see `transaction_id`.
        version: the last batch in it.
        change: the entry of the register that it carries out.
        info: notes for the history of a sink that keeps one.
        once: a transaction id of this commit alone, kept beside app_id by a sink that adds rows out of
            order; None where the version tells whether it was made.
        still_ours: raises RefusedError ``lease.lost`` when the lease was lost; asked by a Target whose
            publish is more than one commit, before each.
    """

    app_id: str
    version: int
    change: Change
    info: Mapping[str, str] = field(default_factory=dict)
    still_ours: Callable[[], None] = lambda: None
    once: str | None = None

    @property
    def epoch(self) -> int:
        """Of the lease it is made under; a sink that can refuses a smaller one than it has seen."""
        return self.change.epoch


class ChangedMeanwhileError(Exception):
    """Another commit came between the look at a table and this one; nothing was changed, look again."""


class Target(Protocol):
    """One sink as publishing sees it, from its first look on: whoever looks again makes another.

    What fences a stale holder of a lease is the sink's own transaction, never a lock of the metastore: each
    change is begun in the register *after* the first look, and a commit fails when the successor, which
    closes what it finds open there, has called `fence` since that look.
    """

    @property
    def based_on(self) -> int | None:
        """The version of a Delta table that is looked at; None for other sinks."""

    def published_batch(self, app_id: str) -> int:
        """The last batch that readers see whole, or -1. Raises SourceError when it cannot be reached."""

    def begun_batch(self, app_id: str) -> int:
        """The last batch that readers see anything of."""

    def make_visible(self, staged: Staged, commit: Commit) -> None:
        """Show these batches, each row once however often this is called with them.

        Raises:
            ChangedMeanwhileError: it was changed since the first look.
            SourceError: the sink cannot be reached or written; the same call may be made again.
            RefusedError: ``lease.lost``: a newer holder has written.
        """

    def holds(self, change: Change, app_id: str) -> bool:
        """Whether an earlier holder's change is in the sink. Raises SourceError."""

    def fence(self, lease: Lease) -> None:
        """From here on no change begun under an older epoch of this lease can be committed."""


@dataclass(frozen=True)
class NewRows:
    """Rows of one event-time interval, computed again.

    Attributes:
        files: parquet files with all of them.
        column: of the sink; says which interval a row belongs to.
        app_id: see `transaction_id`.
        overtaken: given the last batch that readers see, whether one of those up to it may have brought rows
            of the interval that these rows do not know of.
        begin: begins the change in the register, given what it is based on; called after the look.
        info: notes for the history of a sink that keeps one.
    """

    interval: Interval
    files: Sequence[StagedFile]
    column: str
    app_id: str
    overtaken: Callable[[int], bool]
    begin: Callable[[int | None], Change]
    info: Mapping[str, str]


@runtime_checkable
class Replaceable(Target, Protocol):
    """A sink of which one interval can be replaced."""

    def replace(self, new: NewRows) -> bool:
        """One commit that puts the new rows in place of those of their interval; no publish comes between.

        Returns:
            False when they were overtaken: nothing is changed.

        Raises:
            SourceError: the sink cannot be reached or written; the same call may be made again.
        """


def transaction_id(pipeline: str, generation: int, table: StagedTable) -> str:
    """The id under which a sink remembers the last batch of a pipeline's commits into one of its tables.

    By the pipeline's `name_in_sink`, which a rename leaves as it is.

    It names the generation: a sink skips a batch id it has seen, and a new generation counts from 0.
    """
    return f"drawdown/{pipeline}/{generation}/{table}"


@contextmanager
def conflicts_explained(pipeline: str, table: StagedTable) -> Iterator[None]:
    """Raise SourceError ``sink.conflict`` where a commit is not made again when another one came between."""
    try:
        yield
    except ChangedMeanwhileError as conflict:
        raise SourceError(
            "sink.conflict",
            f"the {table} of {pipeline} was changed while it was written: {conflict}",
            where=f"pipeline {pipeline}",
            do="find out who else writes to that table, then run the same again: nothing was changed",
        ) from None


def fence_id(lease: str) -> str:
    """The transaction id that every Delta commit under a lease carries: two such commits, the later one not
    knowing of the earlier, conflict (Delta's protocol, ConcurrentTransactionException)."""
    return f"drawdown/{lease}/fence"


def info_of(change: Change) -> dict[str, str]:
    """What a table's history says of a commit: enough to make the register again from it."""
    return {
        "drawdown.pipeline": change.pipeline,
        "drawdown.run": change.run_id,
        "drawdown.change": change.change_id,
        "drawdown.kind": change.kind,
        "drawdown.generation": str(change.generation),
        "drawdown.scope": json.dumps(change.scope, separators=(",", ":")),
    }
