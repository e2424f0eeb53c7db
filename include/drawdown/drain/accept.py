"""Let a checkpoint go on whose operators another version writes in other words, because a person says so."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from drawdown.drain.planning import plan_pipeline
from drawdown.metastore.records import Lease
from drawdown.plan.acceptance import accepted
from drawdown.plan.changes import changes
from drawdown.workspace import Generation


def accept(root: SparkSession, generation: Generation, current: Callable[[], Lease]) -> list[str]:
    """Note the operators in the words of now; each change in a sentence.

    Raises:
        RefusedError: ``accept.nothing``, ``accept.meaning``.
        DrawdownError: what else the plan refuses.
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
