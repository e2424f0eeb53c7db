"""Several stateful operators in one query: only in append mode does the second get final rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.plan_tree import PlanNode
from drawdown.query.checks.subject import Subject

# Operators that emit a row again when its group changes; deduplication emits a row once in every mode.
_GIVES_AGAIN: Mapping[str, str] = {
    "Aggregate": "an aggregation",
    "Distinct": "DISTINCT",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState",
    "FlatMapGroupsWithState": "flatMapGroupsWithState",
    "TransformWithStateInPySpark": "transformWithState",
}
_TAKES = {
    **_GIVES_AGAIN,
    "Deduplicate": "a deduplication",
    "DeduplicateWithinWatermark": "a deduplication",
}


def chains(subject: Subject) -> Iterator[PlanVerdict]:
    """Yield refusals ``mode.chain``."""
    if subject.mode != "append":
        yield from _chained(subject.plan, "", subject.mode)


def _chained(node: PlanNode, above: str, mode: str) -> Iterator[PlanVerdict]:
    """Yield verdicts below a node; `above` names the nearest stateful operator that takes its rows."""
    if not node.streaming:
        return
    if above and node.name in _GIVES_AGAIN:
        first = _GIVES_AGAIN[node.name]
        yield PlanVerdict(
            "refused",
            "mode.chain",
            f"chaining stateful operators is not supported in {mode} mode: {first} emits a row again"
            f" whenever its group changes, and {above} after it would treat each of them as a new row",
            do="set `mode: append` with a watermark, so that each row is emitted once, or let a second"
            " pipeline read the table of this one",
            about=f"{first}, then {above}",
        )
        return
    for child in node.children:
        yield from _chained(child, _TAKES.get(node.name, above), mode)
