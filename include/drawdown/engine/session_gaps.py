"""Rows without a session: what a computed session gap drops is counted by the batch's own execution.

A row whose gap is zero, negative or NULL is filtered out below the session window, and Spark counts it
nowhere. Here an observation is put under that filter; the rows and the state are those of the plan as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column

from drawdown.engine.boundary import SESSIONLESS_METRICS, frame_of
from drawdown.engine.examine.plan_tree import Node, dynamic_gap


def count_sessionless(session: SparkSession, output: DataFrame) -> DataFrame:
    """The same rows; each computed session gap in the plan counts what it drops as SESSIONLESS_METRICS."""
    counting = _Counting(session)
    plan = counting.under(Node(output._jdf.queryExecution().analyzed()))
    return frame_of(session, plan) if counting.found else output


@dataclass
class _Counting:
    session: SparkSession
    found: int = 0

    def under(self, node: Node) -> Any:
        """The Java plan of a node, with an observation below each filter of a computed gap."""
        condition = dynamic_gap(node)
        children = [self.under(child) for child in node.children]
        if condition is not None:
            children = [self._observed(children[0], condition)]
        elif all(new.equals(old.java) for new, old in zip(children, node.children, strict=True)):
            return node.java
        jvm = self.session._jvm
        assert jvm is not None
        return node.java.withNewChildren(jvm.PythonUtils.toSeq(children))

    def _observed(self, child: Any, condition: Any) -> Any:
        jvm = self.session._jvm
        assert jvm is not None
        met = Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(condition))
        name = f"{SESSIONLESS_METRICS}{self.found}"
        self.found += 1
        lost = F.count_if(~F.coalesce(met, F.lit(False)))
        return frame_of(self.session, child).observe(name, lost.alias("rows"))._jdf.logicalPlan()
