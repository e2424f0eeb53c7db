"""How far an output is settled: every batch up to there is published, or was discarded by a person."""

from __future__ import annotations

from datetime import datetime, timedelta

from drawdown.metastore.records import UNPUBLISHED, Batch
from drawdown.values.interval import EPOCH
from drawdown.workspace import Generation


def settled_batch(generation: Generation) -> Batch | None:
    """Return the last batch before the first one that is neither published nor discarded; None without one.

    A held slice keeps it back, also with `ordered: false`.
    """
    unpublished = generation.batches(UNPUBLISHED)
    if unpublished:
        return generation.batch(unpublished[0].batch_id - 1)
    newest = generation.metastore.newest_batches(generation.pipeline.name, generation.number, 1)
    return newest[0] if newest else None


def finished_until(generation: Generation, batch_id: int) -> datetime:
    """Return the event time up to which the query was finished after a batch; the epoch before there is one.

    A batch drops state by the watermark it ran with. Without state, a row leaves with its batch, so the
    watermark after the batch counts.
    """
    files = generation.files
    if not generation.fingerprint.get("state.operators") and batch_id in files.commit_batches():
        millis = int(files.commit(batch_id).get("nextBatchWatermarkMs", 0))
    elif batch_id in files.offset_batches():
        millis = files.offsets(batch_id).watermark_ms
    else:
        # Spark keeps only the newest; a batch is recorded with the watermark of the one before.
        behind = generation.batch(batch_id + 1)
        return EPOCH if behind is None or behind.watermark is None else behind.watermark
    return EPOCH + timedelta(milliseconds=millis)
