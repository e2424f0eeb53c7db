"""What a replay stands on, and what refuses it before Spark starts.

A replay recomputes what the live query has finished with. So it reads what that has read, up to the last
batch that readers see, and only event times that its watermark has passed: no later batch can then bring
a row of the interval twice.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from drawdown.checkpoint import CheckpointFiles
from drawdown.errors import RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Checkpoint
from drawdown.sources.committed_offsets import CommittedOffsets
from drawdown.sources.replay_basis import ReplayBasis, replay_of
from drawdown.spec import Pipeline
from drawdown.values.interval import Interval, shown
from drawdown.workspace import Workspace

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def basis_at(
    workspace: Workspace, pipeline: Pipeline, checkpoint: Checkpoint | None, last: int
) -> ReplayBasis:
    """What a replay stands on when `last` is the last visible batch.

    Raises:
        RefusedError: ``replay.nothing-visible``: readers see no batch, or one the metastore does not know.
            ``replay.uneven``: a source that is used twice is read further by one of its uses.
    """
    batch = (
        None if checkpoint is None else workspace.metastore.batch(pipeline.name, checkpoint.generation, last)
    )
    if checkpoint is None or batch is None:
        raise RefusedError(
            "replay.nothing-visible",
            f"nothing that {pipeline.name} has drained is visible yet, so there is nothing to replay",
            where=f"pipeline {pipeline.name}",
            do=f"drawdown run {pipeline.name}",
        )
    files = CheckpointFiles(workspace.storage, checkpoint.path)
    order = tuple(checkpoint.fingerprint.get("source_order", ()))
    past = CommittedOffsets(checkpoint, files, order, tuple(batch.offsets_to))
    if uneven := [name for name in pipeline.streaming_sources if past.differs(name)]:
        raise RefusedError(
            "replay.uneven",
            f"the transform of {pipeline.name} reads {uneven[0]} several times, and after batch {last} its"
            " readings are not equally far",
            where=f"pipeline {pipeline.name}",
            do=f"drawdown run {pipeline.name}",
        )
    closed = _closed(workspace.metastore, pipeline, checkpoint, files, last)
    return ReplayBasis(checkpoint, batch, past, closed)


def refuse_open(
    pipeline: Pipeline, interval: Interval, basis: ReplayBasis, closed_at: datetime | None = None
) -> None:
    """Raise RefusedError ``replay.open`` for an interval that the live query is not finished with.

    Args:
        closed_at: the watermark by which its state is, once the plan is known.
    """
    needed = interval.end + replay_of(pipeline).lookahead.delta
    needed = max(needed, closed_at or needed)
    if basis.closed < needed:
        stands = "has seen no event yet" if basis.closed <= _EPOCH else f"stands at {shown(basis.closed)}"
        raise RefusedError(
            "replay.open",
            f"the watermark of {pipeline.name} {stands}, and the interval {interval} is closed when it is at"
            f" {shown(needed)} (its end, and what its rows reach beyond it)",
            where=f"pipeline {pipeline.name}",
            do=f"replay what ends earlier; or `drawdown run {pipeline.name}` when later events have arrived",
        )


def _closed(
    metastore: Metastore, pipeline: Pipeline, checkpoint: Checkpoint, files: CheckpointFiles, last: int
) -> datetime:
    """The event time that the query was finished with after batch `last`.

    State is let go by the watermark that a batch ran with. Without state a row is out with its batch, so the
    watermark that the batch has made counts.
    """
    if not pipeline.watermarked_sources:
        return metastore.now()
    if not checkpoint.fingerprint.get("state.operators") and last in files.commit_batches():
        millis = int(files.commit(last).get("nextBatchWatermarkMs", 0))
    elif last in files.offset_batches():
        millis = files.offsets(last).watermark_ms
    else:
        # Spark keeps the newest only; a batch is noted with the watermark of the one before it.
        behind = metastore.batch(pipeline.name, checkpoint.generation, last + 1)
        return _EPOCH if behind is None or behind.watermark is None else behind.watermark
    return _EPOCH + timedelta(milliseconds=millis)
