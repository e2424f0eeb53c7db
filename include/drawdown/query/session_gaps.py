"""Rows without a window: what windows and sessions drop is counted by the batch's own execution.

A row whose event time is NULL, or whose computed session gap is zero, negative or NULL, is filtered out by
the window, and Spark counts it nowhere. Here an observation is put under that filter; the rows and the state
are those of the plan as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column

from drawdown.query.checks.plan_tree import Node, dynamic_gap, is_session, is_window, items
from drawdown.rows.boundary import SESSIONLESS_METRICS, frame_of


def count_sessionless(session: SparkSession, output: DataFrame) -> DataFrame:
    """The same rows; each window in the plan counts what it drops as SESSIONLESS_METRICS."""
    counting = _Counting(session)
    plan = counting.under(Node(output._jdf.queryExecution().analyzed()))
    return frame_of(session, plan) if counting.found else output


@dataclass
class _Counting:
    session: SparkSession
    found: int = 0

    def under(self, node: Node, parent: Node | None = None) -> Any:
        """The Java plan of a node, with an observation below each filter of a window."""
        kept = _kept_by(node, parent)
        children = [self.under(child, node) for child in node.children]
        if kept is not None and node.children[0].name == "Expand":
            # Above it each row is there once for every window that it may be in.
            children = [self._on(children[0], [self._observed(children[0].children().apply(0), kept)])]
        elif kept is not None:
            children = [self._observed(children[0], kept)]
        elif all(new.equals(old.java) for new, old in zip(children, node.children, strict=True)):
            return node.java
        return self._on(node.java, children)

    def _on(self, plan: Any, children: list[Any]) -> Any:
        jvm = self.session._jvm
        assert jvm is not None
        return plan.withNewChildren(jvm.PythonUtils.toSeq(children))

    def _observed(self, child: Any, condition: Any) -> Any:
        jvm = self.session._jvm
        assert jvm is not None
        met = Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(condition))
        name = f"{SESSIONLESS_METRICS}{self.found}"
        self.found += 1
        lost = F.count_if(~F.coalesce(met, F.lit(False)))
        return frame_of(self.session, child).observe(name, lost.alias("rows"))._jdf.logicalPlan()


def _kept_by(node: Node, parent: Node | None) -> Any | None:
    """The condition of rows that a window keeps, when this node is the filter that Spark puts at one
    (ResolveTimeWindows: TimeWindowing and SessionWindowing, Spark 4.2)."""
    if node.name != "Filter":
        return None
    condition, below = node.java.condition(), node.children[0]
    if dynamic_gap(node) is not None:
        return condition
    asks_for_a_time = condition.nodeName() == "IsNotNull"
    if below.name == "Expand":
        made = below.java.projections().apply(0).apply(0).nodeName() == "CreateNamedStruct"
        # Where windows do not divide evenly, the condition is about each window, and NULL for none.
        return condition if made and asks_for_a_time else None
    if not asks_for_a_time:
        return None
    makes = [each for each in (below, parent) if each is not None and each.name == "Project"]
    return condition if any(_makes_window(each) for each in makes) else None


def _makes_window(project: Node) -> bool:
    """Whether a window or a session is made here, and not only passed on."""
    return any(
        each.nodeName() == "Alias"
        and each.child().nodeName() == "CreateNamedStruct"
        and (is_session(each) or is_window(each))
        for each in items(project.java.projectList())
    )
