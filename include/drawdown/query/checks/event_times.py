"""At most one event-time column per stateful operator: Spark would fail in the middle of the first batch.

Source: WatermarkSupport.findEventTimeColumn (Spark 4.2), which the physical operators call on the columns
that are left after column pruning; seen for joins, deduplication and grouping keys.
"""

from __future__ import annotations

from collections.abc import Iterator

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.plan_tree import PlanNode, is_watermarked_column, items
from drawdown.query.checks.subject import Subject


def event_times(subject: Subject) -> Iterator[PlanVerdict]:
    """Yield refusals ``watermark.two-columns``."""
    for node in subject.optimized.walk():
        if node.streaming:
            for what, columns in _event_times(node):
                if len(columns) > 1:
                    yield _refusal(what, columns)


def _event_times(node: PlanNode) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each input in which an operator looks for its event time, and the watermarked columns there."""
    if node.name == "Join" and all(child.streaming for child in node.children):
        for word, child in zip(("left", "right"), node.children, strict=True):
            yield f"the {word} side of a join of two streams", child.watermarked_columns
    elif node.name in ("Deduplicate", "DeduplicateWithinWatermark"):
        yield "the input of a deduplication", node.children[0].watermarked_columns
    elif node.name == "Aggregate":
        keys = items(node.java.groupingExpressions())
        yield "a GROUP BY", tuple(str(key.name()) for key in keys if is_watermarked_column(key))


def _refusal(what: str, columns: tuple[str, ...]) -> PlanVerdict:
    return PlanVerdict(
        "refused",
        "watermark.two-columns",
        f"{what} has more than one event-time column: {', '.join(columns)}; a window of a watermarked column"
        " is one too, and a join brings along those of both its sides",
        do="leave all but one of them out of the select before it; if only the value is needed, recompute"
        f" it, for example `{columns[0]} + INTERVAL 0 SECONDS`, which has no watermark",
        about=", ".join(columns),
    )
