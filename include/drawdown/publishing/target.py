"""What publishing asks of a sink: how far it has come, and to make staged batches visible.

Adding a sink that stages means one Target, and one line in targets.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from drawdown.metastore.records import StagedFile, StagedTable
from drawdown.spec.interval import Interval


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
        epoch: of the lease it is made under; a sink that can refuses a smaller one than it has seen.
        info: notes for the history of a sink that keeps one.
        once: a transaction id of this commit alone, kept beside app_id by a sink that adds rows out of
            order; None where the version tells whether it was made.
        still_ours: raises RefusedError ``lease.lost`` when it was lost; for a Target that is not atomic.
    """

    app_id: str
    version: int
    epoch: int
    info: Mapping[str, str] = field(default_factory=dict)
    still_ours: Callable[[], None] = lambda: None
    once: str | None = None


class Target(Protocol):
    """One sink as publishing sees it.

    Attributes:
        atomic: a publish is one commit, made inside the metastore's transaction that has checked the lease.
            If not, it may take minutes, and each of its commits asks ``Commit.still_ours`` first.
    """

    @property
    def atomic(self) -> bool: ...

    def published_batch(self, app_id: str) -> int:
        """The last batch that readers see whole, or -1. Raises SourceError when it cannot be reached."""

    def begun_batch(self, app_id: str) -> int:
        """The last batch that readers see anything of; of an atomic Target the same."""

    def make_visible(self, staged: Staged, commit: Commit) -> None:
        """Show these batches, each row once however often this is called with them.

        Raises:
            SourceError: the sink cannot be reached or written; the same call may be made again.
            RefusedError: ``lease.lost``: a newer holder has written.
        """


@dataclass(frozen=True)
class NewRows:
    """Rows of one event-time interval, computed again.

    Attributes:
        files: parquet files with all of them.
        column: of the sink; says which interval a row belongs to.
        app_id: see `transaction_id`.
        overtaken: given the last batch that readers see, whether one of those up to it may have brought rows
            of the interval that these rows do not know of.
        info: notes for the history of a sink that keeps one.
    """

    interval: Interval
    files: Sequence[StagedFile]
    column: str
    app_id: str
    overtaken: Callable[[int], bool]
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

    It names the generation: a sink skips a batch id it has seen, and a new generation counts from 0.
    """
    return f"drawdown/{pipeline}/{generation}/{table}"
