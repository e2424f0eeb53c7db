"""Functions that keep their own state, and LIMIT: what may follow them, and in which mode."""

from __future__ import annotations

from collections.abc import Iterator

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.plan_tree import PlanNode
from drawdown.query.checks.subject import Subject

# FlatMapGroupsWithState is Scala's mapGroupsWithState and flatMapGroupsWithState.
_FUNCTIONS = {
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState",
    "FlatMapGroupsWithState": "flatMapGroupsWithState",
}
_STATEFUL = frozenset({
    "Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct", "GlobalLimit", "Join",
    "TransformWithState", "TransformWithStateInPySpark", *_FUNCTIONS,
})  # fmt: skip


def state_functions(subject: Subject) -> Iterator[PlanVerdict]:
    """Yield refusals ``state.function-chained`` and ``state.limit-in-update``."""
    yield from _chained(subject.plan, behind=None)
    if subject.mode == "update" and any(n.name == "GlobalLimit" and n.streaming for n in subject.plan.walk()):
        yield PlanVerdict(
            "refused",
            "state.limit-in-update",
            "LIMIT is not supported in update mode: it counts the rows of the result over all runs, and in"
            " update mode a row of the result may come again",
            do="say `mode: append` (the first rows of all runs) or `mode: complete`, or remove the LIMIT",
            about="LIMIT",
        )


def _chained(node: PlanNode, behind: str | None) -> Iterator[PlanVerdict]:
    """Yield verdicts on the functions below a node; ``behind`` names a stateful operator above it."""
    if not node.streaming:
        return
    if behind is not None and node.name in _FUNCTIONS:
        function = _FUNCTIONS[node.name]
        yield PlanVerdict(
            "refused",
            "state.function-chained",
            f"{function} is followed by another stateful operator ({behind}): it is unknown how late the"
            " function's rows are, so the operator after it would drop some of them or wait forever",
            do=f"split it into two pipelines: this one writes the rows of {function} to a Delta table, the"
            " next has that table as its source and does the rest; or use transformWithState with"
            " eventTimeColumnName",
            about=function,
        )
        return
    stateful = node.name in _STATEFUL and all(child.streaming for child in node.children)
    for child in node.children:
        yield from _chained(child, node.name if stateful else behind)
