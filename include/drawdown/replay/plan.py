"""The basis of a replay, and the checks before Spark starts.

A replay recomputes only what the live query has finished with. It reads the live query's input up to the last
visible batch, and only event times behind its watermark, so that no later batch can add a row of the interval
twice.
"""

from __future__ import annotations

from datetime import datetime

from drawdown.checkpoint import CheckpointFiles
from drawdown.errors import RefusedError
from drawdown.metastore.records import Checkpoint, HeldSlice
from drawdown.publishing.settled import finished_until
from drawdown.sources.committed_offsets import CommittedOffsets
from drawdown.sources.replay_basis import ReplayBasis, replay_of
from drawdown.spec import Pipeline
from drawdown.values.interval import EPOCH, Interval
from drawdown.values.text import utc
from drawdown.workspace import Generation, Workspace


def basis_at(
    workspace: Workspace, pipeline: Pipeline, checkpoint: Checkpoint | None, last: int
) -> ReplayBasis:
    """Return the basis of a replay when `last` is the last visible batch.

    Raises:
        RefusedError: ``replay.nothing-visible``: no batch is visible, or one that is not in the metastore.
            ``replay.uneven``: a source that is used twice was read to different offsets.
    """
    batch = (
        None if checkpoint is None else workspace.metastore.batch(pipeline.name, checkpoint.generation, last)
    )
    held = workspace.metastore.held_slices(pipeline.name)
    if (checkpoint is None or batch is None) and held:
        raise RefusedError(
            "replay.nothing-visible",
            f"nothing that {pipeline.name} has drained is visible: a slice ({held[0]}) is held",
            where=f"pipeline {pipeline.name}",
            do=_decide_first(held[0]),
        )
    if checkpoint is None or batch is None:
        raise RefusedError(
            "replay.nothing-visible",
            f"{pipeline.name} has not published anything yet, so there is nothing to replay",
            where=f"pipeline {pipeline.name}",
            do=f"drawdown run {pipeline.name}",
        )
    files = CheckpointFiles(workspace.storage, checkpoint.path)
    order = tuple(checkpoint.fingerprint.get("source_order", ()))
    past = CommittedOffsets(checkpoint, files, order, tuple(batch.offsets_to))
    if uneven := [name for name in pipeline.streaming_sources if past.differs(name)]:
        raise RefusedError(
            "replay.uneven",
            f"the transform of {pipeline.name} reads {uneven[0]} several times, and after batch {last}"
            " these reads are at different offsets",
            where=f"pipeline {pipeline.name}",
            do=f"drawdown run {pipeline.name}",
        )
    generation = Generation(workspace, pipeline, checkpoint)
    closed = finished_until(generation, last) if pipeline.watermarked_sources else workspace.metastore.now()
    return ReplayBasis(checkpoint, batch, past, closed, held)


def refuse_open(
    pipeline: Pipeline, interval: Interval, basis: ReplayBasis, closed_at: datetime | None = None
) -> None:
    """Raise RefusedError ``replay.open`` for an interval that the live query has not finished.

    Args:
        closed_at: the watermark that finishes its state, once the plan is known.
    """
    needed = interval.end + replay_of(pipeline).lookahead.delta
    needed = max(needed, closed_at or needed)
    if basis.closed >= needed:
        return
    stands = "has not seen an event yet" if basis.closed <= EPOCH else f"is at {utc(basis.closed)}"
    if basis.held:
        first = basis.held[0]
        raise RefusedError(
            "replay.open",
            f"a slice of {pipeline.name} ({first}) is held, and the watermark of the batches published"
            f" before it {stands}; the interval {interval} is closed when it reaches {utc(needed)} (its end"
            " plus the reach of its rows)",
            where=f"pipeline {pipeline.name}",
            do=f"replay an earlier interval, or first {_decide_first(first)}",
        )
    raise RefusedError(
        "replay.open",
        f"the watermark of {pipeline.name} {stands}; the interval {interval} is closed when it reaches"
        f" {utc(needed)} (its end plus the reach of its rows)",
        where=f"pipeline {pipeline.name}",
        do=f"replay an earlier interval, or `drawdown run {pipeline.name}` once later events have arrived",
    )


def _decide_first(held: HeldSlice) -> str:
    name = held.verdict.pipeline
    return f"decide about {held}: `drawdown release {name} --why ...` or `drawdown discard {name} --why ...`"
