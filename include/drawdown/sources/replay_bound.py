"""Up to which event time a source had given rows by some batch: from then on a replay does without them.

What a file or an offset holds of an interval nobody has noted. But each batch notes the greatest event time
that it and those before it were fed. The watermark and the delay that is declared today do not tell it: the
delay may have been another one then.
"""

from __future__ import annotations

from datetime import datetime

from drawdown.metastore import Metastore
from drawdown.sources.replay_basis import ReplayBasis, replay_of
from drawdown.spec import Pipeline
from drawdown.values.interval import Interval, shown


def newest_until(
    metastore: Metastore, pipeline: Pipeline, basis: ReplayBasis, name: str, batch_id: int
) -> datetime | None:
    """No row of a source that this batch or one before it was fed is newer; None when nobody knows a bound.

    A batch of before such notes, or one that was pruned, has the bound of the next one that has it.
    """
    if pipeline.sources[name].watermark is None:
        return None
    generation = basis.checkpoint.generation
    for batch in metastore.batches(pipeline.name, generation, first_batch=batch_id):
        if noted := batch.by_source.get(name, {}).get("greatest"):
            return datetime.fromisoformat(noted)
    return metastore.maxima(pipeline.name, generation).get(name)


def does_without(pipeline: Pipeline, interval: Interval, bound: datetime | None) -> bool:
    """Whether a replay of the interval needs nothing up to that event time."""
    return bound is not None and interval.start - replay_of(pipeline).lookback.delta > bound


def from_then_on(pipeline: Pipeline, bound: datetime | None) -> str:
    """The part of a refusal that says what can be replayed; empty when nobody knows it."""
    if bound is None:
        return ""
    return f"; what starts after {shown(bound + replay_of(pipeline).lookback.delta)} can be"
