"""Up to which event time a source had given rows by some batch: from then on a replay does without them.

What a file or an offset holds of an interval nobody has noted. But when a batch had moved the watermark, the
rows that it and those before it were fed are not newer than watermark and delay.
"""

from __future__ import annotations

from datetime import datetime

from drawdown.metastore import Metastore
from drawdown.plan.replay import Basis, replay_of
from drawdown.spec import Pipeline
from drawdown.spec.interval import Interval, shown

_BATCHES_UNTIL_NOTED = 2


def newest_until(
    metastore: Metastore, pipeline: Pipeline, basis: Basis, name: str, batch_id: int
) -> datetime | None:
    """No row of a source that this batch or one before it read is newer; None when nobody knows a bound.

    With several watermarks the query's is that of the slowest source, and bounds no other.
    """
    mark = pipeline.sources[name].watermark
    if mark is None or (len(pipeline.watermarked_sources) > 1 and pipeline.watermark_policy == "min"):
        return None
    first = batch_id + _BATCHES_UNTIL_NOTED
    later = metastore.batches(pipeline.name, basis.checkpoint.generation, first_batch=first)
    found = next((batch.watermark for batch in later if batch.watermark), None)
    return (found or basis.closed) + mark.delay.delta


def does_without(pipeline: Pipeline, interval: Interval, bound: datetime | None) -> bool:
    """Whether a replay of the interval needs nothing up to that event time."""
    return bound is not None and interval.start - replay_of(pipeline).lookback.delta > bound


def from_then_on(pipeline: Pipeline, bound: datetime | None) -> str:
    """The part of a refusal that says what can be replayed; empty when nobody knows it."""
    if bound is None:
        return ""
    return f"; what starts after {shown(bound + replay_of(pipeline).lookback.delta)} can be"
