"""The live pipeline as a replay finds it, and one of its sources as a replay reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from drawdown.errors import RefusedError
from drawdown.kinds import ReplayCode
from drawdown.metastore.records import Batch, Checkpoint, HeldSlice
from drawdown.sources.committed_offsets import CommittedOffsets
from drawdown.spec import Pipeline, Source
from drawdown.spec.replay import Replay
from drawdown.storage import Storage
from drawdown.values.interval import Interval
from drawdown.workspace import Workspace


@dataclass(frozen=True)
class ReplayBasis:
    """The live pipeline as its readers see it.

    Attributes:
        batch: the last visible batch: a replay reads what this batch and those before it have read.
        past: the offsets up to which they have read.
        closed: event times up to here are finished; the present time when there is no watermark.
        held: later slices that wait for a decision, in order.
    """

    checkpoint: Checkpoint
    batch: Batch
    past: CommittedOffsets
    closed: datetime
    held: Sequence[HeldSlice] = ()


@dataclass(frozen=True)
class ReplayedSource:
    """A source of a pipeline whose interval is replayed; a kind's `ReplayCode` gets it."""

    workspace: Workspace
    pipeline: Pipeline
    basis: ReplayBasis
    interval: Interval
    name: str

    @property
    def source(self) -> Source:
        """Return what the spec says about it."""
        return self.pipeline.sources[self.name]

    @property
    def storage(self) -> Storage:
        """Return the storage that its path is in."""
        return Storage.of_source(self.workspace.project, self.source)

    @property
    def code(self) -> ReplayCode:
        """Return how its kind reads it again: of another kind no spec has a `replay:` (spec/replay.py)."""
        return cast("ReplayCode", self.source.kind.replay)

    @property
    def number(self) -> int:
        """Return which of a batch's offsets is its."""
        return self.basis.past.source_order.index(self.name)

    def batches(self, first_batch: int = 0) -> Sequence[Batch]:
        """Return the recorded batches from this one on, also those after the basis, oldest first."""
        generation = self.basis.checkpoint.generation
        return self.workspace.metastore.batches(self.pipeline.name, generation, first_batch=first_batch)


def replay_of(pipeline: Pipeline) -> Replay:
    """Return the pipeline's `replay:`.

    Raises:
        RefusedError: ``replay.undeclared``.
    """
    if pipeline.replay is None:
        raise RefusedError(
            "replay.undeclared",
            f"{pipeline.name} has no `replay:`",
            where=str(pipeline.folder / "pipeline.yaml"),
            do="add `replay: {interval: 1 day, lookback: ...}`, and `time_column:` to its sink",
        )
    return pipeline.replay
