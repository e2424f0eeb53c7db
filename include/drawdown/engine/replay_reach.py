"""How far the state of a transform reaches beyond an interval, against what its replay reads around it.

A replay reads [start - lookback, end + lookahead). A row of the interval that depends on anything outside
comes out wrong, so what is known to reach further is refused. What only the user's own functions know
cannot be looked at: there the lookback is taken for the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql.types import DateType, StructType, TimestampNTZType, TimestampType

from drawdown.engine.examine.join_sides import Join
from drawdown.engine.examine.plan_tree import Node, is_session, is_watermarked, is_watermarked_column, items
from drawdown.engine.query import Query
from drawdown.errors import RefusedError
from drawdown.plan.replay import replay_of
from drawdown.spec import Pipeline
from drawdown.spec.interval import Interval

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING = timedelta(0)
# Nobody knows how much, but something.
_SOMETHING = timedelta(microseconds=1)
_OF_YOUR_OWN = frozenset(
    {"FlatMapGroupsInPandasWithState", "TransformWithStateInPySpark", "TransformWithState"}
)
# Of a resolved time window, microseconds (ResolveTimeWindows of Spark 4.2): its slide, and its length, which
# is what the end adds to the start.
_SLIDE = re.compile(r"% (\d+)\)")
_LENGTH = re.compile(r"\+ (\d+)\), LongType, TimestampType")


@dataclass(frozen=True)
class _Reach:
    """What an operator needs beyond the interval; None is without end.

    Attributes:
        either: enough on one side, as the output's time may be the start of a window or its end.
    """

    what: str
    back: timedelta | None
    ahead: timedelta = _NOTHING
    either: timedelta = _NOTHING


def refuse_no_time(schema: StructType, pipeline: Pipeline) -> None:
    """Raise RefusedError ``replay.no-time`` when nothing says which rows of the sink are in an interval."""
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


def refuse_far_state(query: Query, pipeline: Pipeline, interval: Interval) -> None:
    """Raise RefusedError ``replay.reach`` when state is known to reach further than the replay reads."""
    declared = replay_of(pipeline)
    back, ahead = declared.lookback.delta, declared.lookahead.delta
    plan = Node(query.output._jdf.queryExecution().analyzed())
    for reach in _reaches(plan, query, pipeline, interval):
        if reach.back is None:
            raise _refused(
                pipeline, f"{reach.what} keeps its state for ever: no interval can be computed alone",
                "bound the state by the watermarked column, or remove `replay:`",
            )  # fmt: skip
        if back < reach.back or ahead < reach.ahead or max(back, ahead) < reach.either:
            needs = [("lookback", back, reach.back), ("lookahead", ahead, reach.ahead)]
            short = [f"{name}: {_words(need)}" for name, has, need in needs if has < need]
            either = f"lookback: {_words(reach.either)}, or lookahead, by what {pipeline.sink.time_column} is"
            raise _refused(
                pipeline,
                f"{reach.what} reaches further than a replay of {interval} reads"
                f" (lookback {declared.lookback}, lookahead {declared.lookahead})",
                f"say under `replay:` at least {', '.join(short) or either}",
            )


def _reaches(plan: Node, query: Query, pipeline: Pipeline, interval: Interval) -> Iterator[_Reach]:
    for node in plan.walk():
        if not node.streaming:
            continue
        if node.name == "Aggregate":
            yield _aggregate(node, interval)
        elif node.name in ("Deduplicate", "Distinct"):
            keys = items(node.java.keys() if node.name == "Deduplicate" else node.java.output())
            yield _Reach("the deduplication", _NOTHING if any(map(is_watermarked, keys)) else None)
        elif node.name == "DeduplicateWithinWatermark":
            marks = [s.watermark.delay.delta for s in pipeline.sources.values() if s.watermark]
            yield _Reach("the deduplication within the watermark", max(marks, default=_NOTHING))
        elif node.name == "GlobalLimit":
            yield _Reach("LIMIT", None)
        elif node.name == "Join" and all(child.streaming for child in node.children):
            yield _join(Join(node, query.session._jvm))
        elif node.name in _OF_YOUR_OWN:
            yield _Reach("a function with state of your own", _SOMETHING)


def _aggregate(node: Node, interval: Interval) -> _Reach:
    grouping = items(node.java.groupingExpressions())
    if any(map(is_session, grouping)):
        return _Reach("a session window", _SOMETHING, _SOMETHING)
    if not any(map(is_watermarked_column, grouping)):
        return _Reach("an aggregation without a watermarked window", None)
    window = _window(node)
    if window is None:
        return _Reach("the aggregation", _NOTHING)
    slide, length = window
    # Windows that begin and end with the interval hold nothing of its neighbours.
    whole = (interval.start - _EPOCH) % slide == _NOTHING == (interval.end - _EPOCH) % slide
    return _Reach(f"a window of {_words(length)}", _NOTHING, either=length - slide if whole else length)


def _window(node: Node) -> tuple[timedelta, timedelta] | None:
    """Slide and length of the time window that an aggregation groups by; None where no plan shows it."""
    for below in node.walk():
        if below is not node and below.name == "Aggregate":
            return None
        if below.name in ("Project", "Expand") and (found := _of_text(str(below.java.toString()))):
            return found
    return None


def _of_text(text: str) -> tuple[timedelta, timedelta] | None:
    slide, length = _SLIDE.search(text), _LENGTH.search(text)
    if slide is None or length is None:
        return None
    return timedelta(microseconds=int(slide[1])), timedelta(microseconds=int(length[1]))


def _join(join: Join) -> _Reach:
    what = f"the {join.kind} join of two streams"
    if not (join.frees(join.left) and join.frees(join.right)):
        return _Reach(what, None)
    if join.watermarked_keys:
        return _Reach(what, _NOTHING)
    return _Reach(what, _NOTHING, either=_SOMETHING)


def _words(length: timedelta) -> str:
    """As a spec says it."""
    if length == _SOMETHING:
        return "as far as it reaches"
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        number = length / timedelta(seconds=size)
        if number >= 1 and number == int(number):
            return f"{int(number)} {unit}{'s' if number > 1 else ''}"
    return f"{length // _SOMETHING} microseconds"


def _refused(pipeline: Pipeline, what: str, do: str) -> RefusedError:
    return RefusedError("replay.reach", what, where=str(pipeline.folder / pipeline.transform), do=do)
