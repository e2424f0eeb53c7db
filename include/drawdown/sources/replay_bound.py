"""The greatest event time that a source had delivered by a batch: later intervals do not need its rows.

No record says which event times a file or an offset holds. But each batch records the greatest event time of
the rows that it and earlier batches read. It cannot be derived from the watermark and today's declared delay,
because the delay may have changed since.
"""

from __future__ import annotations

from datetime import datetime

from drawdown.sources.replay_basis import ReplayedSource, replay_of
from drawdown.values.interval import shown


def newest_until(of: ReplayedSource, batch_id: int) -> datetime | None:
    """Return the greatest event time of its rows up to this batch, or a later bound; None if unknown.

    A batch without a recorded time, or whose record was pruned, has the bound of the next batch that has one.
    """
    if of.source.watermark is None:
        return None
    for batch in of.batches(first_batch=batch_id):
        if noted := batch.by_source.get(of.name, {}).get("greatest"):
            return datetime.fromisoformat(noted)
    maxima = of.workspace.metastore.maxima(of.pipeline.name, of.basis.checkpoint.generation)
    return maxima.get(of.name)


def does_without(of: ReplayedSource, bound: datetime | None) -> bool:
    """Whether the replay needs no rows up to that event time."""
    return bound is not None and of.interval.start - replay_of(of.pipeline).lookback.delta > bound


def from_then_on(of: ReplayedSource, bound: datetime | None) -> str:
    """Return the end of a refusal that says what can be replayed; empty when it is unknown."""
    if bound is None:
        return ""
    return f"; what starts after {shown(bound + replay_of(of.pipeline).lookback.delta)} can be"
