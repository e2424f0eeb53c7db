"""Compare how far the rows of an interval depend on rows outside it with what its replay reads around it.

A replay reads [start - lookback, end + lookahead) by event time and replaces the rows whose `time_column`
is in [start, end). A row of the interval that depends on rows outside the range that is read would be wrong,
and a row that the live query has not finished would come twice. Both follow from the analysed plan
(spark_event_times.py). The user's own functions cannot be analysed: for them the declared lookback and
lookahead are trusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from pyspark.sql.types import DateType, StructType, TimestampNTZType, TimestampType

from drawdown.errors import RefusedError
from drawdown.query.checks.plan_tree import PlanNode, is_session, is_watermarked, is_watermarked_column, items
from drawdown.query.checks.stateful.join_sides import Join
from drawdown.query.query import Query
from drawdown.replay.spark_event_times import Times, times_of
from drawdown.sources.replay_basis import replay_of
from drawdown.spark.gateway import jvm_of
from drawdown.spec import Pipeline
from drawdown.values.interval import EPOCH, Interval

_MICRO = timedelta(microseconds=1)
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def refuse_no_time(schema: StructType, pipeline: Pipeline, interval: Interval) -> None:
    """Refuse when nothing says which rows of the sink are in the interval.

    Raises:
        RefusedError: ``replay.no-time``: the column is not a time. ``replay.reach``: it holds days, and the
            interval does not consist of whole days.
    """
    column = str(pipeline.sink.time_column)
    kind = schema[column].dataType
    if not isinstance(kind, DateType | TimestampType | TimestampNTZType):
        raise RefusedError(
            "replay.no-time",
            f"{column}, the time column of {pipeline.name}, is {kind.simpleString().upper()}: a replay"
            " cannot compare text and numbers as times",
            where=str(pipeline.folder / (pipeline.sink.schema_file or "pipeline.yaml")),
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
    def _plan(self) -> PlanNode:
        return PlanNode(self.query.output._jdf.queryExecution().analyzed())

    @cached_property
    def _times(self) -> Times | None:
        """Return those of the time column; None unless the plan shows them for every source."""
        column = str(self.pipeline.sink.time_column)
        times, sources = times_of(self._plan, column, self.pipeline, jvm_of(self.query.session))
        if not sources:
            # Every source is read completely.
            return times or Times({})
        return times if times is not None and sources <= times.read.keys() else None

    @cached_property
    def _values(self) -> tuple[int, int] | None:
        """Return the first and the last value that the column can have in the interval, microseconds."""
        if self._times is None:
            return None
        start, end = ((at - EPOCH) // _MICRO for at in (self.interval.start, self.interval.end))
        first = start + (self._times.offset - start) % self._times.step
        last = end - 1 - (end - 1 - self._times.offset) % self._times.step
        return (first, last) if first <= last else None

    @property
    def is_known(self) -> bool:
        """Whether the plan shows it. Then a row without event time belongs to no interval."""
        return self._times is not None

    @property
    def needs(self) -> tuple[timedelta, timedelta]:
        """Return the least lookback and lookahead that miss no row of the interval, when it is known."""
        if self._times is None or self._values is None:
            return timedelta(0), timedelta(0)
        first, last = self._values
        spans = self._times.read.values()
        back = (self.interval.start - _at(first + span.first) for span in spans)
        ahead = (_at(last + span.last + 1) - self.interval.end for span in spans)
        return max(back, default=timedelta(0)), max(ahead, default=timedelta(0))

    @property
    def closed_at(self) -> datetime:
        """Return the watermark at which state is finished with every row of the interval, if it is known."""
        if self._times is None or self._values is None or self._times.done is None:
            return self.interval.end
        return max(self.interval.end, _at(self._values[1] + self._times.done.last))

    def refuse_far(self) -> None:
        """Raise RefusedError ``replay.reach`` when rows depend on more than the replay reads, or when it is
        unknown and the spec does not declare it."""
        for what in _endless(self._plan, self.query):
            raise _refused(
                self.pipeline,
                f"{what} keeps its state forever, so no interval can be recomputed alone",
                "bound the state by the watermarked column, or remove `replay:`",
            )
        declared, column = replay_of(self.pipeline), self.pipeline.sink.time_column
        if self._times is None:
            if missing := {"lookback", "lookahead"} - declared.model_fields_set:
                raise _refused(
                    self.pipeline,
                    f"the plan does not show how far {column} can be from the event times of its input rows",
                    f"declare {' and '.join(sorted(missing))} under `replay:` (`0 seconds` if there is"
                    " none); or let the column be a truncation or a window of the watermarked column",
                )
            return
        has = declared.lookback.delta, declared.lookahead.delta
        words = zip(("lookback", "lookahead"), has, self.needs, strict=True)
        if short := [f"{name}: {_words(need)}" for name, given, need in words if given < need]:
            raise _refused(
                self.pipeline,
                f"{column} of {self.interval} depends on rows further away than a replay reads (lookback"
                f" {declared.lookback}, lookahead {declared.lookahead})",
                f"set under `replay:` at least {', '.join(short)}; or replay an interval with other bounds",
            )


def _endless(plan: PlanNode, query: Query) -> Iterator[str]:
    """Yield the operators whose state no watermark bounds."""
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
            join = Join(node, jvm_of(query.session))
            if not (join.frees(join.left) and join.frees(join.right)):
                yield f"the {join.kind} join of two streams"


def _words(length: timedelta) -> str:
    """Return a duration as a spec writes it."""
    for unit, size in _UNITS:
        number = length / timedelta(seconds=size)
        if number >= 1 and number == int(number):
            return f"{int(number)} {unit}{'s' if number > 1 else ''}"
    return f"{length // _MICRO} microseconds"


def _at(micros: int) -> datetime:
    return EPOCH + micros * _MICRO


def _refused(pipeline: Pipeline, what: str, do: str) -> RefusedError:
    return RefusedError("replay.reach", what, where=str(pipeline.folder / pipeline.transform), do=do)
