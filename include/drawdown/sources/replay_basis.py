"""The live pipeline as a replay finds it: how far its readers see it, and what its spec says of replays."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from drawdown.errors import RefusedError
from drawdown.metastore.records import Batch, Checkpoint
from drawdown.sources.committed_offsets import CommittedOffsets
from drawdown.spec import Pipeline
from drawdown.spec.replay import Replay


@dataclass(frozen=True)
class ReplayBasis:
    """The live pipeline as its readers see it.

    Attributes:
        batch: the last batch that is visible: what it and those before it read is what a replay reads.
        past: the offsets up to which that is.
        closed: event times up to here are finished; the present time without any watermark.
    """

    checkpoint: Checkpoint
    batch: Batch
    past: CommittedOffsets
    closed: datetime


def replay_of(pipeline: Pipeline) -> Replay:
    """The pipeline's `replay:`.

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
