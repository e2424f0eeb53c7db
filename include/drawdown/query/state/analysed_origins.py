"""Where a column of an analysed plan comes from: its expression, down to the columns of the sources.

Plans that keep the same thing in state have the same text, whatever columns are called in between. Spark's
numbers for expressions, which differ from run to run, are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from drawdown.query.checks.plan_tree import PlanNode, expr_id, items
from drawdown.rows.row_fates import boundary_name
from drawdown.spark.sql_bounds import MARK, without_bounds

_NUMBER = re.compile(r"#\d+L?(-T\d+ms)?")
_TUMBLING = re.compile(r"LongType\) - (\d+)\) % (\d+)\)")
_LENGTH = re.compile(r"\+ (\d+)\)")
_GAP = re.compile(r" \+ (.+?) as timestamp\), TimestampType, LongType\)")
_UNITS = ((86_400_000_000, "day"), (3_600_000_000, "hour"), (60_000_000, "minute"), (1_000_000, "second"))


@dataclass
class AnalysedOrigins:
    """The columns below one node.

    A union has the columns of its first branch, as in Spark.
    """

    node: PlanNode
    _defined: dict[int, Any] = field(default_factory=dict)
    _of_sources: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for child in self.node.children:
            self._note(child)

    def of(self, expression: Any) -> str:
        """Return an expression (Java Expression) in terms of the sources' columns."""
        text = str(expression.toString())
        if MARK in text:
            expression = without_bounds(expression)
            text = str(expression.toString())
        for attribute in items(expression.references().toSeq()):
            parts = re.split(rf"(?<!\w){re.escape(str(attribute.toString()))}(?!\d)", text)
            text = self._column(attribute).join(parts)
        return in_words(_NUMBER.sub("", text))

    def typed(self, expression: Any) -> str:
        """Return the same with its type, which decides whether state of one plan can be read by another."""
        text = self.of(expression)
        if text.startswith(("window(", "session_window(")):
            return text
        return f"{text} {expression.dataType().simpleString()}"

    def _column(self, attribute: Any) -> str:
        number = expr_id(attribute)
        if number in self._of_sources:
            return self._of_sources[number]
        if number in self._defined:
            return self.of(self._defined[number])
        return str(attribute.name())

    def _note(self, node: PlanNode) -> None:
        source = boundary_name(node.java)
        if source is not None:
            self._of_sources |= {expr_id(a): f"{source}.{a.name()}" for a in items(node.java.output())}
            return
        for output, expression in _definitions(node):
            self._defined.setdefault(output, expression)
        for child in node.children:
            self._note(child)


def in_words(text: str) -> str:
    """Return the text of an expression; a window as the user writes it."""
    return _window(text) or text


def _definitions(node: PlanNode) -> list[tuple[int, Any]]:
    """Return number and expression of each column that a node computes."""
    if node.name == "Expand":
        # A sliding window is an Expand with a projection for each window that a row is in.
        output, first = items(node.java.output()), items(node.java.projections().apply(0))
        return [(expr_id(a), e) for a, e in zip(output, first, strict=True) if not _is_attribute(e, a)]
    if node.name == "Project":
        computed = items(node.java.projectList())
    elif node.name == "Aggregate":
        computed = items(node.java.aggregateExpressions())
    else:
        return []
    return [(expr_id(each), each.child()) for each in computed if each.getClass().getSimpleName() == "Alias"]


def _is_attribute(expression: Any, attribute: Any) -> bool:
    return bool(expression.semanticEquals(attribute))


def _window(text: str) -> str | None:
    """Return a window as it was written, from what TimeWindowing and SessionWindowing made (Spark 4.2)."""
    if not text.startswith("named_struct(start, ") or "precisetimestampconversion" not in text:
        return None
    tumbling = _TUMBLING.search(text)
    if tumbling is None:
        gap = _GAP.search(text)
        start = text.split("precisetimestampconversion(", 2)[2].split(", TimestampType")[0]
        return (
            f"session_window({start}, {gap[1].removeprefix('cast(').removesuffix(' as interval)')})"
            if gap
            else None
        )
    offset, slide = int(tumbling[1]), int(tumbling[2])
    length = int(_LENGTH.findall(text.split(" end, ")[-1])[-1])
    column = text.split("precisetimestampconversion(")[-1].split(", TimestampType")[0]
    parts = [column, _duration(length)]
    if slide != length or offset:
        parts.append(_duration(slide))
    if offset:
        parts.append(_duration(offset))
    return f"window({', '.join(parts)})"


def _duration(micros: int) -> str:
    for unit, name in _UNITS:
        if micros % unit == 0:
            return f"{micros // unit} {name}{'s' * (micros != unit)}"
    return f"{micros} microseconds"
