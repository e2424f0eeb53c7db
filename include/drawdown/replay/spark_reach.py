"""How far the rows of an interval reach beyond it, against what its replay reads around it.

A replay reads [start - lookback, end + lookahead) by event time and replaces the rows whose `time_column`
is in [start, end). A row of the interval that depends on anything outside of what is read comes out wrong,
and one that the live query is not finished with comes twice. Both follow from the analysed plan
(spark_event_times.py). What only the user's own functions know cannot be looked at: there declared lookback
and lookahead are taken for the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from pyspark.sql.types import DateType, StructType, TimestampNTZType, TimestampType

from drawdown.errors import RefusedError
from drawdown.query.checks.join_sides import Join
from drawdown.query.checks.plan_tree import Node, is_session, is_watermarked, is_watermarked_column, items
from drawdown.query.query import Query
from drawdown.replay.spark_event_times import Times, times_of
from drawdown.sources.replay_basis import replay_of
from drawdown.spec import Pipeline
from drawdown.values.interval import Interval

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def refuse_no_time(schema: StructType, pipeline: Pipeline, interval: Interval) -> None:
    """Refuse when nothing says which rows of the sink are in the interval.

    Raises:
        RefusedError: ``replay.no-time``: the column is no time. ``replay.reach``: it has days, and the
            interval does not consist of days.
    """
    column = str(pipeline.sink.time_column)
    kind = schema[column].dataType
    if not isinstance(kind, DateType | TimestampType | TimestampNTZType):
        raise RefusedError(
            "replay.no-time",
            f"{column}, the time column of {pipeline.name}, is {kind.simpleString().upper()}: text and"
            " numbers are not compared as times are",
            where=str(pipeline.folder / str(pipeline.sink.schema_file)),
            do="name a column of type TIMESTAMP, TIMESTAMP_NTZ or DATE",
        )
    if isinstance(kind, DateType) and not interval.is_days:
        raise _refused(
            pipeline,
            f"{column}, the time column of {pipeline.name}, is a DATE, and {interval} is not whole days",
            "replay from midnight to midnight, UTC",
        )


@dataclass(frozen=True)
class Reach:
    """What a replay of one interval needs, as the plan shows it."""

    query: Query
    pipeline: Pipeline
    interval: Interval

    @cached_property
    def _plan(self) -> Node:
        return Node(self.query.output._jdf.queryExecution().analyzed())

    @cached_property
    def _times(self) -> Times | None:
        """Of the time column; None unless the plan shows how far it lies from every source's event times."""
        column = str(self.pipeline.sink.time_column)
        times, sources = times_of(self._plan, column, self.pipeline, self.query.session._jvm)
        if not sources:
            # Everything is read whole.
            return times or Times({})
        return times if times is not None and sources <= times.read.keys() else None

    @cached_property
    def _values(self) -> tuple[int, int] | None:
        """The first and the last value that the column can have in the interval, microseconds."""
        if self._times is None:
            return None
        start, end = ((at - _EPOCH) // _MICRO for at in (self.interval.start, self.interval.end))
        first = start + (self._times.offset - start) % self._times.step
        last = end - 1 - (end - 1 - self._times.offset) % self._times.step
        return (first, last) if first <= last else None

    @property
    def is_known(self) -> bool:
        """Whether the plan shows it. A row without event time is then no row of any interval."""
        return self._times is not None

    @property
    def needs(self) -> tuple[timedelta, timedelta]:
        """The least lookback and lookahead with which no row of the interval is missed, when it is known."""
        if self._times is None or self._values is None:
            return timedelta(0), timedelta(0)
        first, last = self._values
        spans = self._times.read.values()
        back = (self.interval.start - _at(first + span.first) for span in spans)
        ahead = (_at(last + span.last + 1) - self.interval.end for span in spans)
        return max(back, default=timedelta(0)), max(ahead, default=timedelta(0))

    @property
    def closed_at(self) -> datetime:
        """The watermark by which state is finished with every row of the interval, where it is known."""
        if self._times is None or self._values is None or self._times.done is None:
            return self.interval.end
        return max(self.interval.end, _at(self._values[1] + self._times.done.last))

    def refuse_far(self) -> None:
        """Raise RefusedError ``replay.reach`` when rows are known to reach further than the replay reads, or
        when nobody knows how far, and the spec does not say it."""
        for what in _endless(self._plan, self.query):
            raise _refused(
                self.pipeline,
                f"{what} keeps its state forever: no interval can be computed alone",
                "bound the state by the watermarked column, or remove `replay:`",
            )
        declared, column = replay_of(self.pipeline), self.pipeline.sink.time_column
        if self._times is None:
            if missing := {"lookback", "lookahead"} - declared.model_fields_set:
                raise _refused(
                    self.pipeline,
                    f"the plan does not show how far {column} lies from the event times of the rows that it"
                    " is made from",
                    f"declare {' and '.join(sorted(missing))} under `replay:` (`0 seconds` where it is"
                    " nothing); or let the column be a truncation or a window of the watermarked column",
                )
            return
        has = declared.lookback.delta, declared.lookahead.delta
        words = zip(("lookback", "lookahead"), has, self.needs, strict=True)
        if short := [f"{name}: {_words(need)}" for name, given, need in words if given < need]:
            raise _refused(
                self.pipeline,
                f"{column} of {self.interval} is made from rows further away than a replay reads"
                f" (lookback {declared.lookback}, lookahead {declared.lookahead})",
                f"say under `replay:` at least {', '.join(short)}; or replay an interval with other bounds",
            )


def _endless(plan: Node, query: Query) -> Iterator[str]:
    """The operators whose state no watermark bounds."""
    for node in plan.walk():
        if not node.streaming:
            continue
        if node.name == "Aggregate":
            grouping = items(node.java.groupingExpressions())
            if not any(is_watermarked_column(each) or is_session(each) for each in grouping):
                yield "an aggregation without a watermarked window"
        elif node.name in ("Deduplicate", "Distinct"):
            keys = items(node.java.keys() if node.name == "Deduplicate" else node.java.output())
            if not any(map(is_watermarked, keys)):
                yield "the deduplication"
        elif node.name == "GlobalLimit":
            yield "LIMIT"
        elif node.name == "Join" and all(child.streaming for child in node.children):
            join = Join(node, query.session._jvm)
            if not (join.frees(join.left) and join.frees(join.right)):
                yield f"the {join.kind} join of two streams"


def _words(length: timedelta) -> str:
    """As a spec says it."""
    for unit, size in _UNITS:
        number = length / timedelta(seconds=size)
        if number >= 1 and number == int(number):
            return f"{int(number)} {unit}{'s' if number > 1 else ''}"
    return f"{length // _MICRO} microseconds"


def _at(micros: int) -> datetime:
    return _EPOCH + micros * _MICRO


def _refused(pipeline: Pipeline, what: str, do: str) -> RefusedError:
    return RefusedError("replay.reach", what, where=str(pipeline.folder / pipeline.transform), do=do)
