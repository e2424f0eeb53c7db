"""The two sides of a join as Spark sees them: which stream, which have watermarks, whose state it frees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from drawdown.query.checks.plan_tree import PlanNode, is_watermarked_column, items
from drawdown.rows.row_fates import boundary_name

# Any watermark serves to find out whether it bounds the state. This one is beyond 2^31, so that Py4J
# passes it as a Long.
_SOME_WATERMARK = 10**13


@dataclass(frozen=True)
class JoinSide:
    """The left or the right input of a join."""

    word: str
    node: PlanNode

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Return the streaming sources below it."""
        return tuple(sorted({name for n in self.node.walk() if (name := boundary_name(n.java))}))

    @property
    def label(self) -> str:
        return f"the {self.word} side" + (f" ({', '.join(self.sources)})" if self.sources else "")

    def has(self, attribute: Any) -> bool:
        return bool(self.node.java.outputSet().contains(attribute))


@dataclass(frozen=True)
class Join:
    """A join of the analysed plan.

    Sources: StreamingJoinHelper and StreamingSymmetricHashJoinHelper (Spark 4.2): a side's
    state is freed by a watermark among the equality keys, or by a condition that bounds its event time
    from below by the watermarked column of the other side. In the second case the side needs a watermarked
    column of its own, too: Spark compares that column with the bound, and without one it frees nothing
    (SPARK-58904).
    """

    node: PlanNode
    jvm: Any

    @cached_property
    def kind(self) -> str:
        """Return the join type as in SQL: INNER, LEFT OUTER, ..."""
        return str(self.node.java.joinType().sql())

    @cached_property
    def left(self) -> JoinSide:
        return JoinSide("left", self.node.children[0])

    @cached_property
    def right(self) -> JoinSide:
        return JoinSide("right", self.node.children[1])

    def other(self, side: JoinSide) -> JoinSide:
        return self.right if side is self.left else self.left

    @cached_property
    def has_equality(self) -> bool:
        """Whether the condition holds an equality of the two sides."""
        keys = self.jvm.org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys.unapply(self.node.java)
        return bool(keys.isDefined())

    @cached_property
    def watermarked_keys(self) -> tuple[JoinSide, ...]:
        """Return the sides that have a watermark in an event-time equality; it frees the state of both."""
        keys = self.jvm.org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys.unapply(self.node.java)
        if not keys.isDefined():
            return ()
        for left, right in zip(items(keys.get()._2()), items(keys.get()._3()), strict=True):
            found = [(self.left, left), (self.right, right)]
            watermarked = tuple(side for side, key in found if is_watermarked_column(key))
            if watermarked:
                return watermarked
        return ()

    def frees(self, side: JoinSide) -> bool:
        """Whether the other side's watermark shows when a row of this side can no longer find a match."""
        return self.other(side) in self.watermarked_keys or self._range_frees(side)

    def compares_times(self) -> bool:
        """Whether the condition mentions event times (timestamps or windows) of both sides."""
        condition = self.node.java.condition()
        if not condition.isDefined():
            return False
        times = [a for a in items(condition.get().references().toSeq()) if _is_time(a)]
        return all(any(side.has(a) for a in times) for side in (self.left, self.right))

    def furthest(self, side: JoinSide, condition: Any) -> int | None:
        """Return how many ms the other side's event time can be before that of a matching row here.

        Args:
            condition: a Java Expression.

        Returns:
            None when the condition sets no bound.
        """
        helper = self.jvm.org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper
        found = helper.getStateValueWatermark(
            side.node.java.outputSet(),
            self.other(side).node.java.outputSet(),
            self.jvm.scala.Some(condition),
            self.jvm.scala.Some(_SOME_WATERMARK),
        )
        return _SOME_WATERMARK - int(found.get()) if found.isDefined() else None

    def bounds(self, side: JoinSide) -> bool:
        """Whether the condition bounds the event time of a side from below by the other side's watermark."""
        condition = self.node.java.condition()
        return condition.isDefined() and self.furthest(side, condition.get()) is not None

    def _range_frees(self, side: JoinSide) -> bool:
        return bool(side.node.watermarked_columns) and self.bounds(side)


def _is_time(attribute: Any) -> bool:
    kind = str(attribute.dataType().catalogString())
    return kind.startswith("timestamp") or kind.startswith("struct<start:timestamp")
