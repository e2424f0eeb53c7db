"""Count rows without a window, which windows and sessions drop, while the batch executes.

A window filters out a row whose event time is NULL, or whose computed session gap is zero, negative or NULL,
and Spark does not count it. An observation is added under that filter; rows and state stay as they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column

from drawdown.query.checks.plan_tree import PlanNode, dynamic_gap, is_session, is_window, items
from drawdown.rows.row_fates import SESSIONLESS_METRICS, frame_of
from drawdown.spark.gateway import jvm_of


def count_sessionless(session: SparkSession, output: DataFrame) -> DataFrame:
    """Return the same rows; each window in the plan then counts what it drops as SESSIONLESS_METRICS."""
    counting = _Counting(session)
    plan = counting.under(PlanNode(output._jdf.queryExecution().analyzed()))
    return frame_of(session, plan) if counting.found else output


@dataclass
class _Counting:
    session: SparkSession
    found: int = 0

    def under(self, node: PlanNode, parent: PlanNode | None = None) -> Any:
        """Return the Java plan of a node, with an observation below each filter of a window."""
        kept = _kept_by(node, parent)
        children = [self.under(child, node) for child in node.children]
        if kept is not None and node.children[0].name == "Expand":
            # Above it, each row is repeated for every window that it may be in.
            children = [self._on(children[0], [self._observed(children[0].children().apply(0), kept)])]
        elif kept is not None:
            children = [self._observed(children[0], kept)]
        elif all(new.equals(old.java) for new, old in zip(children, node.children, strict=True)):
            return node.java
        return self._on(node.java, children)

    def _on(self, plan: Any, children: list[Any]) -> Any:
        return plan.withNewChildren(jvm_of(self.session).PythonUtils.toSeq(children))

    def _observed(self, child: Any, condition: Any) -> Any:
        jvm = jvm_of(self.session)
        met = Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(condition))
        name = f"{SESSIONLESS_METRICS}{self.found}"
        self.found += 1
        lost = F.count_if(~F.coalesce(met, F.lit(False)))
        return frame_of(self.session, child).observe(name, lost.alias("rows"))._jdf.logicalPlan()


def _kept_by(node: PlanNode, parent: PlanNode | None) -> Any | None:
    """Return the condition of rows that a window keeps; None unless this node is Spark's filter for a window.

    See ResolveTimeWindows: TimeWindowing and SessionWindowing, Spark 4.2.
    """
    if node.name != "Filter":
        return None
    condition, below = node.java.condition(), node.children[0]
    if dynamic_gap(node) is not None:
        return condition
    asks_for_a_time = condition.nodeName() == "IsNotNull"
    if below.name == "Expand":
        made = below.java.projections().apply(0).apply(0).nodeName() == "CreateNamedStruct"
        # When windows do not divide evenly, the condition is about each window, and NULL without one.
        return condition if made and asks_for_a_time else None
    if not asks_for_a_time:
        return None
    makes = [each for each in (below, parent) if each is not None and each.name == "Project"]
    return condition if any(_makes_window(each) for each in makes) else None


def _makes_window(project: PlanNode) -> bool:
    """Whether this node creates a window or a session instead of passing one on."""
    return any(
        each.nodeName() == "Alias"
        and each.child().nodeName() == "CreateNamedStruct"
        and (is_session(each) or is_window(each))
        for each in items(project.java.projectList())
    )
