"""A Java logical plan as a small Python tree, with what the rules of this package need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

# Metadata key of an event-time column: EventTimeWatermark.delayKey, Spark 4.2.
_WATERMARK = "spark.watermarkDelayMs"
# Metadata key of a session: SessionWindow.marker, Spark 4.2.
_SESSION = "spark.sessionWindow"
# Metadata key of a window: TimeWindow.marker, Spark 4.2.
_WINDOW = "spark.timeWindow"


@dataclass(frozen=True)
class PlanNode:
    """One node of an analysed plan; ``java`` is its LogicalPlan, for facts that only one rule needs."""

    java: Any

    @cached_property
    def name(self) -> str:
        """Return Spark's node name: Aggregate, Join, Deduplicate ..."""
        return str(self.java.nodeName())

    @cached_property
    def streaming(self) -> bool:
        return bool(self.java.isStreaming())

    @cached_property
    def children(self) -> tuple[PlanNode, ...]:
        found = self.java.children()
        return tuple(PlanNode(found.apply(i)) for i in range(found.size()))

    @cached_property
    def watermarked_columns(self) -> tuple[str, ...]:
        """Return the names of the output columns that have a watermark."""
        return tuple(str(a.name()) for a in items(self.java.output()) if is_watermarked(a))

    def walk(self) -> Iterator[PlanNode]:
        """Yield this node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def text(self) -> str:
        """Return the node in one line, as Spark prints it."""
        return str(self.java.simpleString(1_000))


def expr_id(named: Any) -> int:
    """Return the number that tells a column of a plan from others of the same name."""
    return int(named.exprId().id())


def conjuncts(condition: Any) -> Iterator[Any]:
    """Yield the parts of a condition that AND joins."""
    if condition.getClass().getSimpleName() == "And":
        yield from conjuncts(condition.left())
        yield from conjuncts(condition.right())
    else:
        yield condition


def items(java_sequence: Any) -> list[Any]:
    """Return the elements of a Scala Seq."""
    return [java_sequence.apply(i) for i in range(java_sequence.size())]


def is_watermarked(attribute: Any) -> bool:
    """Whether an attribute has a watermark, itself or as the start or end of a window."""
    return bool(attribute.metadata().contains(_WATERMARK))


def is_watermarked_column(expression: Any) -> bool:
    """Whether an expression is itself a watermarked attribute, not computed from one."""
    return expression.nodeName() == "AttributeReference" and is_watermarked(expression)


def is_session(expression: Any) -> bool:
    """Whether a column is a session window."""
    named = expression.nodeName() in ("AttributeReference", "Alias")
    return named and bool(expression.metadata().contains(_SESSION))


def is_window(expression: Any) -> bool:
    """Whether a column is a tumbling or sliding window."""
    named = expression.nodeName() in ("AttributeReference", "Alias")
    return named and bool(expression.metadata().contains(_WINDOW))


def dynamic_gap(node: PlanNode) -> Any | None:
    """Return the condition that a row with a computed session gap must meet; None for any other node.

    The node must be the filter that Spark puts under the session window (ResolveTimeWindows:
    SessionWindowing, Spark 4.2).
    """
    if node.name != "Filter":
        return None
    below = node.children[0]
    # Our own node, which counts the rows that the filter drops (rows_without_window.py).
    below = below.children[0] if below.name == "CollectMetrics" else below
    made = (
        [each for each in items(below.java.projectList()) if is_session(each)]
        if below.name == "Project"
        else []
    )
    condition = node.java.condition()
    # With a constant gap the filter only requires a time.
    if not made or not condition.references().contains(made[0].toAttribute()):
        return None
    return condition
