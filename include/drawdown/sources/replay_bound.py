"""The greatest event time that a source had delivered by a batch: later intervals do not need its rows.

No record says which event times a file or an offset holds. But each batch records the greatest event time of
the rows that it and earlier batches read. It cannot be derived from the watermark and today's declared delay,
because the delay may have changed since.
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
    """Return the greatest event time of a source's rows up to this batch, or a later bound; None if unknown.

    A batch without a recorded time, or whose record was pruned, has the bound of the next batch that has one.
    """
    if pipeline.sources[name].watermark is None:
        return None
    generation = basis.checkpoint.generation
    for batch in metastore.batches(pipeline.name, generation, first_batch=batch_id):
        if noted := batch.by_source.get(name, {}).get("greatest"):
            return datetime.fromisoformat(noted)
    return metastore.maxima(pipeline.name, generation).get(name)


def does_without(pipeline: Pipeline, interval: Interval, bound: datetime | None) -> bool:
    """Whether a replay of the interval needs no rows up to that event time."""
    return bound is not None and interval.start - replay_of(pipeline).lookback.delta > bound


def from_then_on(pipeline: Pipeline, bound: datetime | None) -> str:
    """Return the end of a refusal that says what can be replayed; empty when it is unknown."""
    if bound is None:
        return ""
    return f"; what starts after {shown(bound + replay_of(pipeline).lookback.delta)} can be"
