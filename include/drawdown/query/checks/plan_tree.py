"""A Java logical plan as a small Python tree: what the rules of this package ask of it."""

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
class Node:
    """One node of an analysed plan; ``java`` is the LogicalPlan for what only one rule needs."""

    java: Any

    @cached_property
    def name(self) -> str:
        """Spark's node name: Aggregate, Join, Deduplicate ..."""
        return str(self.java.nodeName())

    @cached_property
    def streaming(self) -> bool:
        return bool(self.java.isStreaming())

    @cached_property
    def children(self) -> tuple[Node, ...]:
        found = self.java.children()
        return tuple(Node(found.apply(i)) for i in range(found.size()))

    @cached_property
    def watermarked_columns(self) -> tuple[str, ...]:
        """Names of the output columns that are under a watermark."""
        return tuple(str(a.name()) for a in items(self.java.output()) if is_watermarked(a))

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def text(self) -> str:
        """One line, as Spark prints it."""
        return str(self.java.simpleString(1_000))


def items(java_sequence: Any) -> list[Any]:
    """The elements of a Scala Seq."""
    return [java_sequence.apply(i) for i in range(java_sequence.size())]


def is_watermarked(attribute: Any) -> bool:
    """Whether an attribute carries a watermark, itself or as the start or end of a window."""
    return bool(attribute.metadata().contains(_WATERMARK))


def is_watermarked_column(expression: Any) -> bool:
    """Whether an expression is such an attribute, and nothing computed from one."""
    return expression.nodeName() == "AttributeReference" and is_watermarked(expression)


def is_session(expression: Any) -> bool:
    """Whether a column is a session window."""
    named = expression.nodeName() in ("AttributeReference", "Alias")
    return named and bool(expression.metadata().contains(_SESSION))


def is_window(expression: Any) -> bool:
    """Whether a column is a tumbling or sliding window."""
    named = expression.nodeName() in ("AttributeReference", "Alias")
    return named and bool(expression.metadata().contains(_WINDOW))


def dynamic_gap(node: Node) -> Any | None:
    """The condition that a row with a computed session gap must meet, when this node is the filter that Spark
    puts under such a session window (ResolveTimeWindows: SessionWindowing, Spark 4.2)."""
    if node.name != "Filter":
        return None
    below = node.children[0]
    # Where the product counts what the filter drops (session_gaps.py).
    below = below.children[0] if below.name == "CollectMetrics" else below
    made = (
        [each for each in items(below.java.projectList()) if is_session(each)]
        if below.name == "Project"
        else []
    )
    condition = node.java.condition()
    # With a constant gap the filter only asks for a time.
    if not made or not condition.references().contains(made[0].toAttribute()):
        return None
    return condition
