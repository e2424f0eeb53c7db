"""Computes how far a column of an analysed plan can be from the event times of its input rows.

A replay reads rows by their event time and replaces rows by their `time_column`. That works only if the plan
shows how far one can be from the other: this module follows each column upwards from the sources' watermarked
columns. For a column without a span for some source, the distance is unknown.

All numbers are microseconds; times of day and days are UTC, the time zone of every session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import gcd
from typing import Any

from drawdown.query.checks.plan_tree import (
    PlanNode,
    conjuncts,
    expr_id,
    is_watermarked,
    is_watermarked_column,
    items,
)
from drawdown.query.checks.stateful.join_sides import Join, JoinSide
from drawdown.rows.row_fates import boundary_name
from drawdown.spec import Pipeline

_MILLI, _SECOND, _DAY = 1_000, 1_000_000, 86_400_000_000
# Steps and where the first one of 1970 begins; a week begins on Monday. Months and longer have no step:
# their spans are those of the longest.
_STEPS: Mapping[str, tuple[int, int]] = {
    "MICROSECOND": (1, 0),
    "MILLISECOND": (_MILLI, 0),
    "SECOND": (_SECOND, 0),
    "MINUTE": (60 * _SECOND, 0),
    "HOUR": (3_600 * _SECOND, 0),
    "DAY": (_DAY, 0),
    "DD": (_DAY, 0),
    "WEEK": (7 * _DAY, 4 * _DAY),
}
_LONGEST: Mapping[str, int] = {
    **dict.fromkeys(("MONTH", "MON", "MM"), 31 * _DAY),
    "QUARTER": 92 * _DAY,
    **dict.fromkeys(("YEAR", "YYYY", "YY"), 366 * _DAY),
}
# A resolved time window (ResolveTimeWindows of Spark 4.2): its start offset and slide, and its length, which
# is what the end adds to the start.
_SLIDE = re.compile(r"Type, LongType\) - (-?\d+)\) % (\d+)\)")
_LENGTH = re.compile(r"\+ (\d+)\), LongType, Timestamp\w*Type\)\)\)$")
_TIMES = ("timestamp", "timestamp_ntz", "date")
# Nodes that give each row of their input as it is, or leave it out.
_AS_IT_IS = frozenset(
    {
        "SubqueryAlias", "View", "Filter", "Sort", "EventTimeWatermark", "UpdateEventTimeWatermarkColumn",
        "CollectMetrics", "GlobalLimit", "LocalLimit", "Repartition", "RepartitionByExpression",
        "RebalancePartitions", "ResolvedHint", "Generate", "CTERelationDef",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Span:
    """From `first` to `last`, both included."""

    first: int
    last: int

    def __add__(self, other: Span) -> Span:
        return Span(self.first + other.first, self.last + other.last)

    def __neg__(self) -> Span:
        return Span(-self.last, -self.first)

    def __and__(self, other: Span) -> Span:
        """Where both say something, what both allow."""
        return Span(max(self.first, other.first), min(self.last, other.last))

    def __or__(self, other: Span) -> Span:
        """What at least one allows."""
        return Span(min(self.first, other.first), max(self.last, other.last))


_SAME = Span(0, 0)


@dataclass(frozen=True)
class Times:
    """Of a column of times: which values it has, and how far from a value other times lie.

    Attributes:
        read: by source how far from the value the event times lie of the rows that the value's row was made
            from.
        done: how far from the value the watermark lies by which state is finished with the value's row.
        step: values lie on whole multiples of it, behind `offset`.
    """

    read: Mapping[str, Span]
    done: Span | None = None
    step: int = 1
    offset: int = 0

    def moved(self, by: int) -> Times:
        """The column plus a constant."""
        back = Span(-by, -by)
        return replace(self._widened(back), offset=(self.offset + by) % self.step)

    def cut(self, length: int, step: int, offset: int = 0) -> Times:
        """The start of a stretch of time of at most this length that the column lies in."""
        fits = step % self.step == length % self.step == 0
        first = (self.offset - offset) % self.step if fits else 0
        inside = Span(first, first + length - self.step) if fits else Span(0, length - 1)
        return replace(self._widened(inside), step=step, offset=offset % step)

    def beside(self, other: Times) -> Times:
        """A column that has values of this column and of the other, in different rows or the same."""
        step = gcd(self.step, other.step, self.offset - other.offset)
        shared = {name: self.read[name] | other.read[name] for name in self.read.keys() & other.read.keys()}
        done = self.done | other.done if self.done and other.done else self.done or other.done
        return Times(shared, done, step, self.offset % step)

    def _widened(self, by: Span) -> Times:
        read = {name: by + span for name, span in self.read.items()}
        return replace(self, read=read, done=self.done and by + self.done)


@dataclass(frozen=True)
class Window:
    """A column of time windows."""

    start: Times
    length: int

    @property
    def end(self) -> Times:
        return self.start.moved(self.length)


Column = Times | Window


@dataclass(frozen=True)
class NodeRows:
    """What a node of the plan gives.

    Attributes:
        columns: by the number of Spark's expression.
        sources: those with a watermark, whose rows a replay reads by their event time.
        held: how far its watermark stays behind that of the query, once joins have held rows back.
    """

    columns: Mapping[int, Column] = field(default_factory=dict)
    sources: frozenset[str] = frozenset()
    held: int = 0


def times_of(
    node: PlanNode, column: str, pipeline: Pipeline, jvm: Any
) -> tuple[Times | None, frozenset[str]]:
    """What is known of an output column of an analysed plan, and the watermarked sources below it."""
    rows = _PlanReader(pipeline, jvm).rows(node)
    (attribute,) = (each for each in items(node.java.output()) if each.name() == column)
    found = rows.columns.get(expr_id(attribute))
    return found if isinstance(found, Times) else None, rows.sources


@dataclass
class _PlanReader:
    pipeline: Pipeline
    jvm: Any
    named: dict[int, tuple[NodeRows, list[int]]] = field(default_factory=dict)

    def rows(self, node: PlanNode) -> NodeRows:
        if (source := boundary_name(node.java)) is not None:
            return self._boundary(node, source)
        if node.name == "WithCTE":
            return self._with_cte(node)
        if node.name == "CTERelationRef":
            rows, numbers = self.named[int(node.java.cteId())]
            return replace(rows, columns=_renamed(rows, numbers, node))
        inputs = [self.rows(child) for child in node.children]
        read = frozenset[str]().union(*(each.sources for each in inputs))
        held = max((each.held for each in inputs), default=0)
        if node.name in _AS_IT_IS:
            return inputs[0]
        if node.name == "Join":
            return self._join(node, inputs[0], inputs[1])
        columns: dict[int, Column] = {}
        if node.name == "Project":
            columns = _evaluated(items(node.java.projectList()), inputs[0].columns)
        elif node.name == "Expand":
            columns = _expanded(node, inputs[0])
        elif node.name == "Aggregate":
            columns = _aggregated(node, inputs[0])
        elif node.name == "Union":
            columns = _united(node, inputs)
        elif node.name in ("Deduplicate", "Distinct"):
            keys = items(node.java.keys() if node.name == "Deduplicate" else node.java.output())
            columns = _deduplicated(inputs[0], [expr_id(key) for key in keys])
        elif node.name == "DeduplicateWithinWatermark":
            columns = self._within_watermark(inputs[0])
        return NodeRows(columns, read, held)

    def _boundary(self, node: PlanNode, source: str) -> NodeRows:
        mark = self.pipeline.sources[source].watermark
        if mark is None:
            return NodeRows()
        (time,) = (a for a in items(node.java.output()) if a.name().lower() == mark.column.lower())
        return NodeRows({expr_id(time): Times({source: _SAME})}, frozenset({source}))

    def _with_cte(self, node: PlanNode) -> NodeRows:
        *definitions, plan = node.children
        for each in definitions:
            self.named[int(each.java.id())] = (
                self.rows(each),
                [expr_id(a) for a in items(each.java.output())],
            )
        return self.rows(plan)

    def _within_watermark(self, rows: NodeRows) -> dict[int, Column]:
        """The rows of a key that count as one lie within the delay of each other."""
        marks = [
            source.watermark.delay.delta for source in self.pipeline.sources.values() if source.watermark
        ]
        delay = int(max(marks).total_seconds() * _SECOND) if marks else 0
        around = Span(-delay, delay)
        return {
            number: replace(times, read={name: around + span for name, span in times.read.items()})
            for number, times in rows.columns.items()
            if isinstance(times, Times)
        }

    def _join(self, node: PlanNode, left: NodeRows, right: NodeRows) -> NodeRows:
        join = Join(node, self.jvm)
        read = left.sources | right.sources
        if not all(child.streaming for child in node.children):
            equal = {**left.columns, **right.columns}
            for pair in _equal(join):
                # A row of a static side that is matched has the time of the row it is matched with.
                known = equal.get(pair[0]) or equal.get(pair[1])
                if known is not None:
                    equal |= dict.fromkeys(pair, known)
            return NodeRows(equal, read, max(left.held, right.held))
        links, held = _links(join, left, right)
        columns: dict[int, Column] = {}
        for side, rows, other, seen in (
            (join.left, left, right, links),
            (join.right, right, left, [link.turned for link in links]),
        ):
            outer = _keeps_unmatched(join, side)
            before = max(left.held, right.held)
            for number, column in rows.columns.items():
                columns[number] = _across(number, column, other.sources, seen, before if outer else None)
        return NodeRows(columns, read, max(left.held, right.held) + held)


# Joins of two streams.


@dataclass(frozen=True)
class _Link:
    """What a join's condition says of a column of either side: how far the other lies from this side's.

    Attributes:
        key: the number of this side's column.
        times: of this side's column, and of the other's; of a window its start.
        done: how far from either the watermark lies by which a row without a match is given.
    """

    key: tuple[int, int]
    times: tuple[Times, Times]
    apart: Span
    done: tuple[int, int]

    @property
    def turned(self) -> _Link:
        """As the other side sees it."""
        return _Link(self.key[::-1], self.times[::-1], -self.apart, self.done[::-1])


def _links(join: Join, left: NodeRows, right: NodeRows) -> tuple[list[_Link], int]:
    """All that the condition says, and how far it holds the watermark of its output back."""
    found = []
    for one, other in _equal(join):
        mine, theirs = left.columns.get(one), right.columns.get(other)
        if mine is not None and theirs is not None:
            # The state of a window is finished with at its end.
            found.append(
                _Link((one, other), (_start(mine), _start(theirs)), _SAME, (_end(mine), _end(theirs)))
            )
    if join.watermarked_keys:
        return found, 0
    one_key, other_key = _compared(join, join.left), _compared(join, join.right)
    ahead, back = _furthest(join, join.left), _furthest(join, join.right)
    if one_key is None or other_key is None or ahead is None or back is None:
        return found, 0
    mine, theirs = left.columns.get(one_key), right.columns.get(other_key)
    if isinstance(mine, Times) and isinstance(theirs, Times):
        apart = Span(-back[0], ahead[0])
        found.append(_Link((one_key, other_key), (mine, theirs), apart, (ahead[1], back[1])))
    return found, max(ahead[1], back[1], 0)


def _across(
    number: int, column: Column, others: Iterable[str], links: Sequence[_Link], outer: int | None
) -> Column:
    """A column of one side of a join, with what the join's links show about the other side's sources.

    Args:
        outer: rows without a match are given, and the watermark of the inputs is so far behind.
    """
    times = _start(column)
    done, known = times.done, dict[str, Span]()
    for link in links:
        own, other = link.times
        between = _SAME if number == link.key[0] else _between(times, own)
        if between is None:
            continue
        for name in set(others) & other.read.keys():
            found = between + link.apart + other.read[name]
            known[name] = known[name] & found if name in known else found
        ends = [] if other.done is None else [between + link.apart + other.done]
        ends += [] if outer is None else [between + Span(link.done[0] + outer, link.done[0] + outer)]
        for end in ends:
            done = done | end if done else end
    # The same source may be on both sides.
    read = {name: span | known.get(name, span) for name, span in times.read.items()}
    read = {name: span for name, span in {**known, **read}.items() if name in known or name not in others}
    found_times = replace(times, read=read, done=done)
    return replace(column, start=found_times) if isinstance(column, Window) else found_times


def _start(column: Column) -> Times:
    return column.start if isinstance(column, Window) else column


def _end(column: Column) -> int:
    """How far the end of a column's value is from `_start`."""
    return column.length if isinstance(column, Window) else 0


def _equal(join: Join) -> list[tuple[int, int]]:
    """Numbers of the columns that the condition says are equal, the left side's first."""
    keys = join.jvm.org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys.unapply(join.node.java)
    if not keys.isDefined():
        return []
    pairs = zip(items(keys.get()._2()), items(keys.get()._3()), strict=True)
    return [
        (expr_id(one), expr_id(other))
        for one, other in pairs
        if one.nodeName() == other.nodeName() == "AttributeReference"
    ]


def _keeps_unmatched(join: Join, side: JoinSide) -> bool:
    return join.kind == "FULL OUTER" or join.kind == f"{side.word.upper()} OUTER"


def _compared(join: Join, side: JoinSide) -> int | None:
    """The number of the watermarked column of a side that the condition mentions."""
    condition = join.node.java.condition()
    if not condition.isDefined():
        return None
    mentioned = [a for a in items(condition.get().references().toSeq()) if side.has(a) and is_watermarked(a)]
    return expr_id(mentioned[0]) if len(mentioned) == 1 else None


def _furthest(join: Join, side: JoinSide) -> tuple[int, int] | None:
    """How far the other side's time can lie behind this side's in a match, and how far from this side's
    time the watermark lies by which Spark gives up its row, which it counts in milliseconds."""
    closest: int | None = None
    apart: int | None = None
    for condition in conjuncts(join.node.java.condition().get()):
        millis = join.furthest(side, condition)
        if millis is None:
            continue
        strict = condition.getClass().getSimpleName() in ("LessThan", "GreaterThan")
        # Spark takes a millisecond more where the bound itself is a match.
        most = millis * _MILLI - (1 if strict else _MILLI)
        apart = most if apart is None else min(apart, most)
        closest = millis * _MILLI if closest is None else min(closest, millis * _MILLI)
    return None if apart is None or closest is None else (apart, closest)


# The other nodes.


def _aggregated(node: PlanNode, rows: NodeRows) -> dict[int, Column]:
    """All rows of a group share what it is grouped by, and so what is computed from that."""
    known = dict(rows.columns)
    keys = [each for each in items(node.java.groupingExpressions()) if is_watermarked_column(each)]
    key = known.get(expr_id(keys[0])) if keys else None
    if key is None:
        return _evaluated(items(node.java.aggregateExpressions()), known)
    end = _start(key).moved(_end(key))
    # A group is given once the watermark has come to the end of its window.
    done = replace(_start(key), done=Span(_end(key) + rows.held, _end(key) + rows.held))
    known[expr_id(keys[0])] = replace(key, start=done) if isinstance(key, Window) else done
    return {
        number: column if _start(column).done else _done_at(column, end, rows.held)
        for number, column in _evaluated(items(node.java.aggregateExpressions()), known).items()
    }


def _done_at(column: Column, end: Times, held: int) -> Column:
    between = _between(_start(column), end)
    if between is None:
        return column
    done = replace(_start(column), done=between + Span(held, held))
    return replace(column, start=done) if isinstance(column, Window) else done


def _between(times: Times, other: Times) -> Span | None:
    """How far another column of the same row lies from this one, by the event times that both know."""
    if times is other:
        return _SAME
    found = [times.read[name] + -other.read[name] for name in times.read.keys() & other.read.keys()]
    return reduce(Span.__and__, found) if found else None


def _deduplicated(rows: NodeRows, keys: Sequence[int]) -> dict[int, Column]:
    """It is unknown which row per key is kept, so its other columns may be another row's."""
    columns = {number: column for number, column in rows.columns.items() if number in keys}
    shared = [_start(column) for column in columns.values()]
    for number, column in rows.columns.items():
        if number in columns or not isinstance(column, Times) or not shared:
            continue
        key = min(shared, key=lambda each: sum(span.last - span.first for span in each.read.values()))
        between = _between(column, key)
        if between is not None:
            columns[number] = replace(column, read={n: between + span for n, span in key.read.items()})
    return columns


def _united(node: PlanNode, inputs: Sequence[NodeRows]) -> dict[int, Column]:
    columns: dict[int, Column] = {}
    # A branch without event times, such as the carriers', is not read by them.
    branches = [pair for pair in zip(node.children, inputs, strict=True) if pair[1].sources]
    for place, output in enumerate(items(node.java.output())):
        found = [rows.columns.get(expr_id(child.java.output().apply(place))) for child, rows in branches]
        times = [each for each in found if isinstance(each, Times)]
        if not times or len(times) < len(branches):
            continue
        lacking = frozenset[str]().union(
            *(rows.sources - each.read.keys() for (_, rows), each in zip(branches, times, strict=True))
        )
        either = reduce(_either, times)
        read = {name: span for name, span in either.read.items() if name not in lacking}
        columns[expr_id(output)] = replace(either, read=read)
    return columns


def _either(one: Times, other: Times) -> Times:
    """A value of one branch or of the other: a source of one alone has nothing to do with the other's."""
    both = one.beside(other)
    return replace(both, read={**one.read, **other.read, **both.read})


def _expanded(node: PlanNode, rows: NodeRows) -> dict[int, Column]:
    """A sliding window is an Expand: one projection for each window that a row falls into, all alike."""
    projections = items(node.java.projections())
    columns: dict[int, Column] = {}
    for place, output in enumerate(items(node.java.output())):
        first = _value(projections[0].apply(place), rows.columns)
        if isinstance(first, Window):
            columns[expr_id(output)] = first
            continue
        # Of grouping sets: the column where it is grouped by, else NULL.
        values = (each.apply(place) for each in projections)
        found = [_value(each, rows.columns) for each in values if each.nodeName() != "Literal"]
        if found and found[0] is not None and all(each == found[0] for each in found):
            columns[expr_id(output)] = found[0]
    return columns


def _renamed(rows: NodeRows, numbers: Sequence[int], node: PlanNode) -> dict[int, Column]:
    """The columns of a common table expression where it is used."""
    outputs = [expr_id(a) for a in items(node.java.output())]
    return {new: rows.columns[old] for old, new in zip(numbers, outputs, strict=True) if old in rows.columns}


# Expressions.


def _evaluated(named: Sequence[Any], columns: Mapping[int, Column]) -> dict[int, Column]:
    found = ((expr_id(each), _value(each, columns)) for each in named)
    return {number: column for number, column in found if column is not None}


def _value(expression: Any, columns: Mapping[int, Column]) -> Column | None:
    """What a Java expression gives; None where that is not known."""
    kind = str(expression.getClass().getSimpleName())
    if kind == "AttributeReference":
        return columns.get(expr_id(expression))
    if kind in ("Alias", "KnownNullable", "KnownNotNull", "PreciseTimestampConversion"):
        return _value(expression.child(), columns)
    if kind in ("ParseToDate", "ParseToTimestamp"):
        return _value(expression.replacement(), columns)
    if kind == "GetStructField":
        window = _value(expression.child(), columns)
        return (window.start, window.end)[int(expression.ordinal())] if isinstance(window, Window) else None
    if kind == "CreateNamedStruct":
        return _window(expression, columns)
    computed = _COMPUTED.get(kind)
    return computed(expression, columns) if computed else None


def _times(expression: Any, columns: Mapping[int, Column]) -> Times | None:
    found = _value(expression, columns)
    return found if isinstance(found, Times) else None


def _cast(cast: Any, columns: Mapping[int, Column]) -> Times | None:
    times = _times(cast.child(), columns)
    before, after = (str(each.dataType().simpleString()) for each in (cast.child(), cast))
    if times is None or before not in _TIMES or after not in _TIMES or not _utc(cast):
        return None
    return times.cut(_DAY, _DAY) if after == "date" != before else times


def _utc(expression: Any) -> bool:
    zone = expression.timeZoneId()
    return not zone.isDefined() or str(zone.get()) == "UTC"


def _date_trunc(trunc: Any, columns: Mapping[int, Column]) -> Times | None:
    return _truncated(_times(trunc.timestamp(), columns), trunc.format()) if _utc(trunc) else None


def _trunc_date(trunc: Any, columns: Mapping[int, Column]) -> Times | None:
    return _truncated(_times(trunc.date(), columns), trunc.format())


def _truncated(times: Times | None, unit: Any) -> Times | None:
    if times is None or unit.nodeName() != "Literal":
        return None
    name = str(unit.toString()).upper()
    if name in _STEPS:
        step, offset = _STEPS[name]
        return times.cut(step, step, offset)
    return times.cut(_LONGEST[name], 1) if name in _LONGEST else None


def _interval_later(plus: Any, columns: Mapping[int, Column]) -> Times | None:
    times, interval = _times(plus.start(), columns), plus.interval()
    if times is None or interval.nodeName() != "Literal" or not _utc(plus):
        return None
    value = interval.value()
    if isinstance(value, int):
        return times.moved(value) if "month" not in str(interval.dataType().simpleString()) else None
    # A CalendarInterval; its months are not of one length.
    return None if value.months else times.moved(value.days * _DAY + value.microseconds)


def _days_later(plus: Any, columns: Mapping[int, Column]) -> Times | None:
    times, days = _times(plus.startDate(), columns), plus.days()
    if times is None or days.nodeName() != "Literal":
        return None
    sign = -1 if plus.getClass().getSimpleName() == "DateSub" else 1
    return times.moved(sign * int(days.value()) * _DAY)


def _micros_later(plus: Any, columns: Mapping[int, Column]) -> Times | None:
    """What window_time() makes of a window's end: of times as numbers only."""
    times, number = _times(plus.left(), columns), plus.right()
    if times is None or number.nodeName() != "Literal":
        return None
    sign = -1 if plus.getClass().getSimpleName() == "Subtract" else 1
    return times.moved(sign * int(number.value()))


def _coalesced(coalesce: Any, columns: Mapping[int, Column]) -> Times | None:
    """One of its arguments, such as the key of a full outer join by USING."""
    found = [_times(each, columns) for each in items(coalesce.children())]
    known = [each for each in found if each is not None]
    return reduce(Times.beside, known) if len(known) == len(found) else None


def _window(struct: Any, columns: Mapping[int, Column]) -> Window | None:
    """The window that TimeWindowing has resolved; None for a session, which has no length of its own."""
    text = str(struct.toString())
    slide, length = _SLIDE.search(text), _LENGTH.search(text)
    time = next(_converted(struct), None)
    times = None if time is None else _times(time, columns)
    if slide is None or length is None or times is None:
        return None
    long, step, offset = int(length[1]), int(slide[2]), int(slide[1])
    return Window(times.cut(long, step, offset), long)


def _converted(expression: Any) -> Iterator[Any]:
    """What is turned from a time into a number inside a window."""
    if expression.getClass().getSimpleName() == "PreciseTimestampConversion" and "timestamp" in str(
        expression.fromType().simpleString()
    ):
        yield expression.child()
        return
    for child in items(expression.children()):
        yield from _converted(child)


_COMPUTED = {
    "Cast": _cast,
    "TruncTimestamp": _date_trunc,
    "TruncDate": _trunc_date,
    "TimestampAddInterval": _interval_later,
    "DateAdd": _days_later,
    "DateSub": _days_later,
    "Add": _micros_later,
    "Subtract": _micros_later,
    "Coalesce": _coalesced,
}
