"""The stateful operators of an analysed plan, and a stable text of what each keeps in state.

The texts are compared from run to run (plan/spec_changes.py): Spark compares only the types in the state, so
after a swap of two keys of the same type it silently reads one as the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from drawdown.query.checks.plan_tree import PlanNode, conjuncts, items
from drawdown.query.state.analysed_origins import AnalysedOrigins
from drawdown.query.state.state_variables import declared_state


@dataclass(frozen=True)
class Operator:
    """One stateful operator.

    Attributes:
        name: Spark's node: Aggregate, Join, Deduplicate ...
        keeps: what is in state, by which keys.
        written: the SQL word that implies the operator, or "".
    """

    name: str
    keeps: str
    written: str = ""


def stateful_operators(plan: PlanNode) -> tuple[Operator, ...]:
    """Return the stateful operators, parents first, as in Spark's plan."""
    found = []
    for node in plan.walk():
        describe = _DESCRIBED.get(node.name)
        if describe is not None and node.streaming and all(c.streaming for c in streamed_inputs(node)):
            found.append(
                Operator(node.name, describe(node, AnalysedOrigins(node)), _WRITTEN.get(node.name, ""))
            )
    return tuple(found)


class Origins(Protocol):
    """Names columns in terms of the sources' columns."""

    def of(self, expression: Any) -> str: ...

    def typed(self, expression: Any) -> str: ...


def describe_function(node: PlanNode, origins: Origins) -> str | None:
    """Return what an operator that calls a user's function keeps; None for other nodes."""
    describe = _FUNCTIONS.get(node.name)
    return None if describe is None else describe(node, origins)


def streamed_inputs(node: PlanNode) -> tuple[PlanNode, ...]:
    """Return the children that are streams."""
    # The second child of a transformWithState is its initial state: a batch.
    return node.children[:1] if node.name.startswith("TransformWithState") else node.children


def _aggregate(node: PlanNode, origins: AnalysedOrigins) -> str:
    keys = [origins.typed(each) for each in items(node.java.groupingExpressions())]
    functions = [
        origins.typed(each)
        for output in items(node.java.aggregateExpressions())
        for each in _aggregate_functions(output)
    ]
    return f"{', '.join(dict.fromkeys(functions)) or 'no aggregate'} by {', '.join(keys) or 'nothing'}"


def _aggregate_functions(expression: Any) -> Iterator[Any]:
    if expression.getClass().getSimpleName() == "AggregateExpression":
        yield expression
        return
    for child in items(expression.children()):
        yield from _aggregate_functions(child)


def _distinct(node: PlanNode, origins: AnalysedOrigins) -> str:
    return f"distinct {', '.join(origins.typed(each) for each in items(node.java.output()))}"


def _deduplicate(node: PlanNode, origins: AnalysedOrigins) -> str:
    keys = ", ".join(origins.typed(each) for each in items(node.java.keys()))
    within = " within the watermark" if node.name == "DeduplicateWithinWatermark" else ""
    return f"first of {keys}{within}"


def _join(node: PlanNode, origins: AnalysedOrigins) -> str:
    condition = node.java.condition()
    left = node.java.left().outputSet()
    parts = (
        [_side_by_side(each, left, origins) for each in conjuncts(condition.get())]
        if (condition.isDefined())
        else ["nothing"]
    )
    return f"{node.java.joinType().sql().lower()} join on {' and '.join(parts)}"


def _side_by_side(condition: Any, left: Any, origins: AnalysedOrigins) -> str:
    """Return an equality with the left input's column first, however it was written."""
    if condition.getClass().getSimpleName() != "EqualTo":
        return origins.of(condition)
    sides = [condition.left(), condition.right()]
    sides.sort(key=lambda side: not side.references().subsetOf(left))
    return " = ".join(origins.typed(side) for side in sides)


def _limit(node: PlanNode, origins: AnalysedOrigins) -> str:
    return f"the first {origins.of(node.java.limitExpr())} rows ever"


def _pandas_state(node: PlanNode, origins: Origins) -> str:
    keys = ", ".join(origins.typed(each) for each in items(node.java.groupingAttributes()))
    return (
        f"state {node.java.stateType().toDDL()} by {keys}, timeout {node.java.timeout().toString()},"
        f" in {node.java.outputMode().toString().lower()} mode"
    )


def _map_state(node: PlanNode, origins: Origins) -> str:
    keys = ", ".join(origins.typed(each) for each in items(node.java.groupingAttributes()))
    return f"a function's state by {keys}, timeout {node.java.timeout().toString()}"


def _processor(node: PlanNode, origins: Origins) -> str:
    keys = ", ".join(origins.typed(each) for each in items(node.java.leftAttributes()))
    return (
        f"{'; '.join(declared_state(node.java.functionExpr())) or 'no state'} by {keys},"
        f" time {node.java.timeMode().toString()}, in {node.java.outputMode().toString().lower()} mode"
    )


_FUNCTIONS: Mapping[str, Callable[[PlanNode, Origins], str]] = {
    "FlatMapGroupsInPandasWithState": _pandas_state,
    "FlatMapGroupsWithState": _map_state,
    "TransformWithStateInPySpark": _processor,
}

_DESCRIBED: Mapping[str, Callable[[PlanNode, AnalysedOrigins], str]] = {
    "Aggregate": _aggregate,
    "Distinct": _distinct,
    "Deduplicate": _deduplicate,
    "DeduplicateWithinWatermark": _deduplicate,
    "Join": _join,
    "GlobalLimit": _limit,
    **_FUNCTIONS,
}

# Operators that are not called by name: a word of SQL implies them.
_WRITTEN: Mapping[str, str] = {"Distinct": "DISTINCT", "GlobalLimit": "LIMIT"}
