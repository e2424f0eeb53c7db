"""What the rules examine: the pipeline and its output's analysed plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession

from drawdown.query.checks.plan_tree import PlanNode
from drawdown.spark.sql_failures import as_refusal
from drawdown.spec import Pipeline
from drawdown.spec.scheduling.trigger import AVAILABLE_NOW, Trigger


@dataclass(frozen=True)
class Subject:
    """A pipeline's analysed query, not started."""

    pipeline: Pipeline
    session: SparkSession
    output: DataFrame
    trigger: Trigger = AVAILABLE_NOW

    @property
    def mode(self) -> str:
        """Return the output mode: append, update or complete."""
        return self.pipeline.sink.mode

    @cached_property
    def plan(self) -> PlanNode:
        return PlanNode(self.output._jdf.queryExecution().analyzed())

    @cached_property
    def optimized(self) -> PlanNode:
        """Return the plan as it will run, without unneeded columns."""
        optimizer = self.session._jsparkSession.sessionState().optimizer()
        with as_refusal():
            return PlanNode(optimizer.execute(self.plan.java))
