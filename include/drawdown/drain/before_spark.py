"""What a drain refuses without Spark: a checkpoint that is damaged, of another place, or of another pipeline.

A drain plans with it, under its lease. An application asks it before it starts Spark, so that nobody waits
half a minute to hear it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from drawdown.drain.reconcile import refuse_foreign_checkpoint
from drawdown.drain.uncounted import refuse_gaps
from drawdown.plan.beside_others import refuse_beside_others
from drawdown.plan.moved_storage import refuse_moved
from drawdown.recovery.first_names import refuse_name_used, refuse_not_renamed
from drawdown.recovery.repair.faults import sink_log
from drawdown.recovery.repair.older_metastore import refuse_older_metastore
from drawdown.spec.scheduling.trigger import is_asynchronous
from drawdown.workspace import Generation


def checks(generation: Generation) -> Iterator[Callable[[], None]]:
    """Yield the checks in their order; each raises what it refuses."""
    pipeline = generation.pipeline
    yield lambda: refuse_beside_others(generation)
    yield lambda: refuse_not_renamed(generation)
    yield lambda: refuse_name_used(generation)
    yield lambda: refuse_foreign_checkpoint(generation)
    yield lambda: refuse_moved(generation.workspace, pipeline, generation.files, sink_log(generation))
    yield lambda: refuse_older_metastore(generation)
    if not is_asynchronous(pipeline):
        yield lambda: refuse_gaps(generation)


def refuse_before_spark(generation: Generation) -> None:
    """Raise what the first of the checks refuses, unless a run that is active may still change it.

    Raises:
        RefusedError, SourceError: as a drain would.
    """
    if generation.metastore.holder_of(generation.pipeline.name) is None:
        for check in checks(generation):
            check()
