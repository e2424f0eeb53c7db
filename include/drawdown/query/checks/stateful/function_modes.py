"""Functions that keep state are written for one output mode, in which the query must run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.plan_tree import PlanNode
from drawdown.query.checks.subject import Subject

_FUNCTIONS: Mapping[str, str] = {
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState",
    "FlatMapGroupsWithState": "flatMapGroupsWithState",
    "TransformWithStateInPySpark": "transformWithState",
}


def function_modes(subject: Subject) -> Iterator[PlanVerdict]:
    """Yield refusals ``mode.function``."""
    for node in subject.plan.walk():
        if node.name in _FUNCTIONS and node.streaming and _mode(node) != subject.mode:
            yield _disagree(_FUNCTIONS[node.name], _mode(node), subject)


def _mode(node: PlanNode) -> str:
    return str(node.java.outputMode().toString()).lower()


def _disagree(function: str, mode: str, subject: Subject) -> PlanVerdict:
    if subject.mode == "complete" or mode == "complete":
        do = f'say "append" (or "update") in {function} and the same as `mode:` of the sink'
    else:
        do = f'say `mode: {mode}` in the sink, or "{subject.mode}" in {function}'
    return PlanVerdict(
        "refused",
        "mode.function",
        f"{function} in {mode} mode is not supported with {subject.mode} output mode: in append mode a"
        " function gives rows that are final, in update mode rows that later ones replace",
        do=do,
        about=function,
    )
