"""Accept, on a person's decision, operators that another version describes differently, or an older sink."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from drawdown.drain.planning import plan_pipeline
from drawdown.metastore.records import Lease
from drawdown.plan.acceptance import accepted
from drawdown.plan.spec_changes import changes
from drawdown.recovery.repair.older_sink import go_on_without
from drawdown.workspace import Generation


def accept(root: SparkSession, generation: Generation, current: Callable[[], Lease]) -> list[str]:
    """Record the operators as this version describes them; returns one sentence per change.

    A sink that was put back from an older copy is accepted first, and alone.

    Raises:
        RefusedError: ``accept.nothing``, ``accept.meaning``.
        DrawdownError: anything else that the plan refuses.
    """
    pipeline, metastore = generation.pipeline, generation.metastore
    plan = plan_pipeline(root, generation.workspace, pipeline)
    if any(error.id == "sink.older-copy" for error in plan.errors):
        return go_on_without(plan.generation, current())
    for error in plan.errors:
        if error.id != "checkpoint.changed":
            raise error
    before = plan.generation.fingerprint
    after = accepted(pipeline, before, plan.fingerprint)
    metastore.update_fingerprint(current(), plan.generation.number, after)
    return [str(change) for change in changes(before, after)]
