"""Output modes that a query can use with an aggregation, with a sort, or with neither.

Spark's guide has the table ("Output Modes"); its checker (UnsupportedOperationChecker) names the mode but not
what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.plan_tree import PlanNode, is_watermarked, items
from drawdown.query.checks.subject import Subject
from drawdown.rows.row_fates import boundary_name


def output_modes(subject: Subject) -> Iterator[PlanVerdict]:
    """Yield refusals ``mode.append-needs-watermark``, ``mode.complete-needs-aggregation``, ``mode.sort``."""
    # The checker treats SQL's DISTINCT as the aggregation that it becomes.
    aggregates = [n for n in subject.plan.walk() if n.name in ("Aggregate", "Distinct") and n.streaming]
    if subject.mode == "append":
        yield from (_never_final(node) for node in aggregates if not _under_watermark(node))
    if subject.mode == "complete" and not aggregates:
        yield PlanVerdict(
            "refused",
            "mode.complete-needs-aggregation",
            "complete mode is not supported for a query without an aggregation: it writes the whole result"
            " with every batch, and keeping all rows that ever came is not feasible",
            do="say `mode: append`, or aggregate with GROUP BY",
            about="complete",
        )
    yield from (_sort(node, subject.mode) for node in subject.plan.walk() if _unsorted(node, subject.mode))


def _never_final(node: PlanNode) -> PlanVerdict:
    what = "DISTINCT" if node.name == "Distinct" else "an aggregation"
    keys = ", ".join(str(each.sql()) for each in _keys(node)) or "nothing"
    marked = [name for name in node.children[0].watermarked_columns if not name.startswith("_dd_")]
    if marked:
        sources = sorted({name for below in node.walk() if (name := boundary_name(below.java))})
        do = f"group by window({marked[0]}, ...) too, or say `mode: update` or `mode: complete`"
        why = f"the watermarked {', '.join(marked)} of {', '.join(sources)} is not among the grouping keys"
    else:
        do = (
            "give the source a `watermark:` and group by its column or a window over it,"
            " or say `mode: update` or `mode: complete`"
        )
        why = "no watermark says when a group is complete"
    if node.name == "Distinct":
        do = "use dropDuplicates or dropDuplicatesWithinWatermark, or select the watermarked column too"
    return PlanVerdict(
        "refused",
        "mode.append-needs-watermark",
        f"append mode is not supported for {what} without watermark (grouped by {keys}): append"
        f" writes a row once, when it is final, and {why}",
        do=do,
        about=keys,
    )


def _under_watermark(node: PlanNode) -> bool:
    keys = _keys(node)
    return any(is_watermarked(a) for key in keys for a in _columns(key))


def _keys(node: PlanNode) -> list[Any]:
    return items(node.java.output() if node.name == "Distinct" else node.java.groupingExpressions())


def _columns(key: Any) -> list[Any]:
    """Return the key if it is a column, else nothing: a computed key has no watermark."""
    return [key] if key.nodeName() == "AttributeReference" else []


def _unsorted(node: PlanNode, mode: str) -> bool:
    """Whether a node is a sort that would have to wait for the end of the stream."""
    if node.name != "Sort" or not node.streaming:
        return False
    return not (mode == "complete" and any(b.name == "Aggregate" and b.streaming for b in node.walk()))


def _sort(node: PlanNode, mode: str) -> PlanVerdict:
    aggregated = any(below.name == "Aggregate" for below in node.walk())
    return PlanVerdict(
        "refused",
        "mode.sort",
        "sorting is not supported on a stream, unless it sorts an aggregated result in complete mode:"
        " a row that comes later may belong before one that is written",
        do=(
            "say `mode: complete`, which writes the whole sorted result with every batch"
            if aggregated
            else "remove ORDER BY, and sort where the table is read"
        ),
        about="ORDER BY",
    )
