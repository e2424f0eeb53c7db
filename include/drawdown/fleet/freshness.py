"""From when on `freshness:` counts for a pipeline.

By the clock it counts from the last publish. A pipeline that is scheduled by assets has nothing to publish
before its input is there: it counts from the moment when every pipeline that it waits for had published
something that it has not taken. As long as one of them has not, it is not late.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from drawdown.metastore import Metastore
from drawdown.metastore.records import UNPUBLISHED
from drawdown.sources.findings import backlog_size
from drawdown.spec import Pipeline

_LOOKS = 50
"""Preflights among which the newest one that found nothing is sought."""


def is_late(waited: timedelta | None, promise: timedelta | None) -> bool:
    """Whether readers have waited for longer than `freshness:` says: never if nothing is due or promised."""
    return waited is not None and promise is not None and waited > promise


def counts_from(metastore: Metastore, pipeline: Pipeline) -> datetime | None:
    """Return since when readers wait for a publish of this pipeline; None when nothing is due."""
    published = metastore.last_published(pipeline.name)
    if published is None or not isinstance(pipeline.schedule, list):
        return published
    taken = _taken_at(metastore, pipeline.name)
    since = [metastore.published_after(each.pipeline, taken) for each in pipeline.schedule]
    came = [at for at in since if at is not None]
    return max(came) if len(came) == len(since) else None


def _taken_at(metastore: Metastore, pipeline: str) -> datetime | None:
    """Return up to when the pipeline has taken and published its input; None if it never has.

    A run that is still going on, failed or died has taken nothing yet; neither has one whose rows are held.
    """
    if _has_unpublished(metastore, pipeline):
        return metastore.began_to_publish(pipeline)
    looks = metastore.figures.backlogs(pipeline, limit=_LOOKS)
    empty = next((look.seen_at for look in looks if _is_empty(look.by_source)), None)
    times = [metastore.began_to_publish(pipeline), metastore.began_to_succeed(pipeline), empty]
    return max((at for at in times if at is not None), default=None)


def _has_unpublished(metastore: Metastore, pipeline: str) -> bool:
    checkpoint = metastore.active_checkpoint(pipeline)
    return checkpoint is not None and bool(metastore.batches(pipeline, checkpoint.generation, UNPUBLISHED))


def _is_empty(by_source: dict[str, dict[str, object]]) -> bool:
    sizes = [backlog_size(found) for found in by_source.values()]
    return bool(sizes) and all(size is not None and size[0] == 0 for size in sizes)
