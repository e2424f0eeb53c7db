"""Accept a checkpoint whose operators an earlier version described differently, on a person's decision."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from drawdown.drain.planning import plan_pipeline
from drawdown.metastore.records import Lease
from drawdown.plan.acceptance import accepted
from drawdown.plan.spec_changes import changes
from drawdown.workspace import Generation


def accept(root: SparkSession, generation: Generation, current: Callable[[], Lease]) -> list[str]:
    """Record the operators as this version describes them; returns one sentence per change.

    Raises:
        RefusedError: ``accept.nothing``, ``accept.meaning``.
        DrawdownError: anything else that the plan refuses.
    """
    pipeline, metastore = generation.pipeline, generation.metastore
    plan = plan_pipeline(root, generation.workspace, pipeline)
    for error in plan.errors:
        if error.id != "checkpoint.changed":
            raise error
    before = plan.generation.fingerprint
    after = accepted(pipeline, before, plan.fingerprint)
    metastore.update_fingerprint(current(), plan.generation.number, after)
    return [str(change) for change in changes(before, after)]
