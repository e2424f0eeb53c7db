"""What the stateful operators of a query keep in state: by which keys, which values, in which order.

Taken from the optimised plan, since state holds what the optimiser leaves: columns that nothing needs are
not in a join's state, aggregates that nobody selects are not in an aggregate's. Keys, aggregates and what
a join remembers are asked of the functions by which Spark plans them (PhysicalAggregation,
ExtractEquiJoinKeys, StreamingJoinHelper; Spark 4.2). plan/kept_state.py compares two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from drawdown.query.checks.plan_tree import Node, is_watermarked, items
from drawdown.query.state.lineage import ColumnLineage, InputLineage
from drawdown.query.state.operators import describe_function
from drawdown.spec.sink import OutputMode

Kept = dict[str, Any]
_SOME_WATERMARK = 2**40


def kept_state(frame: DataFrame, mode: OutputMode) -> list[Kept]:
    """Of each stateful operator, parents first, what it keeps, as JSON-ready values."""
    session = frame.sparkSession
    analysed = frame._jdf.queryExecution().analyzed()
    fixed = _with_batch_times(session, analysed)
    optimised = Node(session._jsparkSession.sessionState().optimizer().execute(fixed))
    lineage = ColumnLineage(Node(analysed))
    found: list[Kept | None] = []
    for node in optimised.walk():
        if not node.streaming or not all(child.streaming for child in _inputs(node)):
            continue
        describe = _DESCRIBED.get(node.name)
        if node.name == "GlobalLimit":
            if _keeps_count(node, mode):
                found.append(_limit(lineage.below(node), node))
        elif describe is not None:
            found.append(describe(session, lineage.below(node), node))
        else:
            function = describe_function(node, lineage.below(node))
            if function is not None:
                found.append({"operator": function})
    return [each for each in found if each is not None]


def _inputs(node: Node) -> tuple[Node, ...]:
    # The second child of a transformWithState is its initial state: a batch.
    return node.children[:1] if node.name.startswith("TransformWithState") else node.children


def _aggregate(session: SparkSession, columns: InputLineage, node: Node) -> Kept | None:
    planned = _planned(_planning(session).PhysicalAggregation, node)
    if planned is None:
        return None
    return {
        "operator": "aggregate",
        # A count of rows is never NULL, and its place in state is nullable all the same.
        "values": [columns.typed(each).removesuffix(" not null") for each in items(planned._2())],
        "keys": [columns.typed(each) for each in items(planned._1())],
    }


def _deduplicate(session: SparkSession, columns: InputLineage, node: Node) -> Kept:
    within = "within the watermark" if node.name == "DeduplicateWithinWatermark" else "ever"
    return {"operator": f"first {within}", "keys": [columns.typed(each) for each in items(node.java.keys())]}


def _join(session: SparkSession, columns: InputLineage, node: Node) -> Kept | None:
    planned = _planned(_planning(session).ExtractEquiJoinKeys, node)
    if planned is None:
        return None
    kind = str(node.java.joinType().sql()).lower()
    rest = [planned._4().get()] if planned._4().isDefined() else []
    left, right = items(node.java.left().output()), items(node.java.right().output())
    found: Kept = {
        "operator": f"{kind} join",
        "left_keys": [columns.typed(each) for each in items(planned._2())],
        "right_keys": [columns.typed(each) for each in items(planned._3())],
        "left": [columns.typed(each) for each in left],
        "right": [columns.typed(each) for each in right],
        "until": _until(session, node),
    }
    if kind != "inner":
        # Outer and semi joins keep with each row whether the condition has ever held for it.
        found["condition"] = sorted(columns.of(part) for each in rest for part in _conjuncts(each))
    return found


def _until(session: SparkSession, node: Node) -> dict[str, int | None]:
    """Milliseconds behind the watermark (negative: before it) up to which rows of a side are forgotten; None
    where time bounds forget none."""
    left, right = node.java.left(), node.java.right()
    condition = node.java.condition()
    helper = _jvm(session).org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper
    # Py4J makes a Long of what is too great for an Integer.
    watermark = _jvm(session).scala.Option.apply(_SOME_WATERMARK)

    def forgets(side: Any, other: Any) -> int | None:
        if condition.isEmpty() or not any(is_watermarked(a) for a in items(other.output())):
            return None
        found = helper.getStateValueWatermark(side.outputSet(), other.outputSet(), condition, watermark)
        return int(found.get()) - _SOME_WATERMARK if found.isDefined() else None

    return {"left": forgets(left, right), "right": forgets(right, left)}


def _conjuncts(condition: Any) -> list[Any]:
    if condition.getClass().getSimpleName() == "And":
        return [*_conjuncts(condition.left()), *_conjuncts(condition.right())]
    return [condition]


def _keeps_count(node: Node, mode: OutputMode) -> bool:
    """As StreamingGlobalLimitStrategy decides: a limit on a whole result is none on a stream."""
    aggregated = any(each.name == "Aggregate" and each.streaming for each in node.walk())
    return mode == "append" or not aggregated


def _limit(columns: InputLineage, node: Node) -> Kept:
    return {"operator": f"the first {columns.of(node.java.limitExpr())} rows ever"}


def _with_batch_times(session: SparkSession, plan: Any) -> Any:
    """A plan whose current times are a batch's, as MicroBatchExecution has it optimised.

    The optimiser makes literals of all others: different ones in each run.
    """
    text = str(plan.toString())
    if not any(each in text for each in ("current_", "now(", "localtimestamp(")):
        return plan
    gateway = session.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    return plan.transformAllExpressions(_BatchTimes(session))


class _BatchTimes:
    """A Scala PartialFunction from expressions to expressions."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def isDefinedAt(self, expression: Any) -> bool:
        return True

    def applyOrElse(self, expression: Any, default: Any) -> Any:
        kind = str(expression.getClass().getSimpleName())
        if kind not in ("CurrentTimestamp", "Now", "CurrentDate", "LocalTimestamp"):
            return expression
        jvm = _jvm(self._session)
        zone = jvm.scala.Option.apply("UTC")
        made = jvm.org.apache.spark.sql.catalyst.expressions.CurrentBatchTimestamp
        return made(0, expression.dataType(), zone)

    class Java:
        implements = ("scala.PartialFunction",)


def _planned(pattern: Any, node: Node) -> Any | None:
    """What Spark plans a node by; None where it has no streaming plan: examine/ refuses that."""
    found = pattern.unapply(node.java)
    return found.get() if found.isDefined() else None


def _planning(session: SparkSession) -> Any:
    return _jvm(session).org.apache.spark.sql.catalyst.planning


def _jvm(session: SparkSession) -> Any:
    jvm = session._jvm
    assert jvm is not None
    return jvm


_DESCRIBED: Mapping[str, Callable[[SparkSession, InputLineage, Node], Kept | None]] = {
    "Aggregate": _aggregate,
    "Deduplicate": _deduplicate,
    "DeduplicateWithinWatermark": _deduplicate,
    "Join": _join,
}
