"""What the stateful operators of a query keep in state: by which keys, which values, in which order.

It is read from the optimised plan, because state holds what the optimiser leaves: unneeded columns are not in
a join's state, unselected aggregates are not in an aggregate's. Keys, aggregates and what a join remembers
come from the functions by which Spark plans them (PhysicalAggregation, ExtractEquiJoinKeys,
StreamingJoinHelper; Spark 4.2). plan/state_fit.py compares two of these results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from drawdown.query.checks.plan_tree import PlanNode, is_watermarked, items
from drawdown.query.state.operators import describe_function, streamed_inputs
from drawdown.query.state.optimised_origins import InputOrigins, OptimisedOrigins
from drawdown.spark.gateway import jvm_of
from drawdown.spec.sink import OutputMode

Kept = dict[str, Any]
_SOME_WATERMARK = 2**40


def kept_state(frame: DataFrame, mode: OutputMode) -> list[Kept]:
    """Return what each stateful operator keeps, parents first, as JSON-ready values."""
    session = frame.sparkSession
    analysed = frame._jdf.queryExecution().analyzed()
    fixed = _with_batch_times(session, analysed)
    optimised = PlanNode(session._jsparkSession.sessionState().optimizer().execute(fixed))
    origins = OptimisedOrigins(PlanNode(analysed))
    found: list[Kept | None] = []
    for node in optimised.walk():
        if not node.streaming or not all(child.streaming for child in streamed_inputs(node)):
            continue
        describe = _DESCRIBED.get(node.name)
        if node.name == "GlobalLimit":
            if _keeps_count(node, mode):
                found.append(_limit(origins.below(node), node))
        elif describe is not None:
            found.append(describe(session, origins.below(node), node))
        else:
            function = describe_function(node, origins.below(node))
            if function is not None:
                found.append({"operator": function})
    return [each for each in found if each is not None]


def _aggregate(session: SparkSession, columns: InputOrigins, node: PlanNode) -> Kept | None:
    planned = _planned(_planning(session).PhysicalAggregation, node)
    if planned is None:
        return None
    return {
        "operator": "aggregate",
        # A count of rows is never NULL, but its column in state is nullable.
        "values": [columns.typed(each).removesuffix(" not null") for each in items(planned._2())],
        "keys": [columns.typed(each) for each in items(planned._1())],
    }


def _deduplicate(session: SparkSession, columns: InputOrigins, node: PlanNode) -> Kept:
    within = "within the watermark" if node.name == "DeduplicateWithinWatermark" else "ever"
    return {"operator": f"first {within}", "keys": [columns.typed(each) for each in items(node.java.keys())]}


def _join(session: SparkSession, columns: InputOrigins, node: PlanNode) -> Kept | None:
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
        # Outer and semi joins store with each row whether it has ever met the condition.
        found["condition"] = sorted(columns.of(part) for each in rest for part in _conjuncts(each))
    return found


def _until(session: SparkSession, node: PlanNode) -> dict[str, int | None]:
    """Return, per side, up to where rows are dropped: ms after the watermark (negative: before it).

    None when no time bound drops rows of that side.
    """
    left, right = node.java.left(), node.java.right()
    condition = node.java.condition()
    helper = jvm_of(session).org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper
    # Py4J passes a number as a Long when it does not fit an Integer.
    watermark = jvm_of(session).scala.Option.apply(_SOME_WATERMARK)

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


def _keeps_count(node: PlanNode, mode: OutputMode) -> bool:
    """Whether a limit counts rows in state, as in StreamingGlobalLimitStrategy: not on a complete result."""
    aggregated = any(each.name == "Aggregate" and each.streaming for each in node.walk())
    return mode == "append" or not aggregated


def _limit(columns: InputOrigins, node: PlanNode) -> Kept:
    return {"operator": f"the first {columns.of(node.java.limitExpr())} rows ever"}


def _with_batch_times(session: SparkSession, plan: Any) -> Any:
    """Return a plan whose current times are a batch's, as MicroBatchExecution optimises it.

    The optimiser turns all other current times into literals, which differ in each run.
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
        jvm = jvm_of(self._session)
        zone = jvm.scala.Option.apply("UTC")
        made = jvm.org.apache.spark.sql.catalyst.expressions.CurrentBatchTimestamp
        return made(0, expression.dataType(), zone)

    class Java:
        implements = ("scala.PartialFunction",)


def _planned(pattern: Any, node: PlanNode) -> Any | None:
    """Return what Spark plans a node by; None without a streaming plan, which checks/ refuses."""
    found = pattern.unapply(node.java)
    return found.get() if found.isDefined() else None


def _planning(session: SparkSession) -> Any:
    return jvm_of(session).org.apache.spark.sql.catalyst.planning


_DESCRIBED: Mapping[str, Callable[[SparkSession, InputOrigins, PlanNode], Kept | None]] = {
    "Aggregate": _aggregate,
    "Deduplicate": _deduplicate,
    "DeduplicateWithinWatermark": _deduplicate,
    "Join": _join,
}
