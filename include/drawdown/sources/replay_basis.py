"""The live pipeline as a replay finds it: how far readers see it, and what its spec says about replays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from drawdown.errors import RefusedError
from drawdown.metastore.records import Batch, Checkpoint, HeldSlice
from drawdown.sources.committed_offsets import CommittedOffsets
from drawdown.spec import Pipeline
from drawdown.spec.replay import Replay


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


def replay_of(pipeline: Pipeline) -> Replay:
    """Return the pipeline's `replay:`.

    Raises:
        RefusedError: ``replay.undeclared``.
    """
    if pipeline.replay is None:
        raise RefusedError(
            "replay.undeclared",
            f"{pipeline.name} does not say how it is replayed",
            where=str(pipeline.folder / "pipeline.yaml"),
            do="add `replay: {interval: 1 day, lookback: ...}`, and `time_column:` to its sink",
        )
    return pipeline.replay
