"""What became of an interval: published by drains, replayed, stale, failed, nothing, or still open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from drawdown.metastore.records import RecordedReplay
from drawdown.values.interval import Interval
from drawdown.values.json_text import read_json
from drawdown.values.moments import of_statistics
from drawdown.values.text import counted, in_utc

Fate = Literal["stale", "failed", "replaying", "replayed", "published", "nothing", "unrecorded", "open"]
FATES: tuple[Fate, ...] = get_args(Fate)
Span = tuple[datetime, datetime]


@dataclass(frozen=True)
class Known:
    """What is recorded of a pipeline's event times.

    Attributes:
        closed: up to here the live query has finished; None: it has published nothing.
        first: the earliest event time that records know of.
        published: the event times of published rows, in order, without overlap.
        replays: of the pipeline, newest first.
        upstream: succeeded replays of pipelines whose rows it reads, newest first.
        hidden: pipelines among them that the reader may not know.
    """

    closed: datetime | None
    first: datetime | None
    lookahead: timedelta
    published: Sequence[Span]
    replays: Sequence[RecordedReplay]
    upstream: Sequence[RecordedReplay]
    hidden: frozenset[str] = frozenset()

    def within(self, start: datetime, end: datetime) -> Known:
        """Return what matters for a part of the calendar."""
        replays, upstream = (
            [each for each in known if each.start < end and each.end > start]
            for known in (self.replays, self.upstream)
        )
        return replace(self, replays=replays, upstream=upstream)


def fate_of(interval: Interval, known: Known) -> tuple[Fate, str]:
    """Return what became of an interval, and a sentence about it."""
    own = [each for each in known.replays if each.start <= interval.start and each.end >= interval.end]
    done = next((each for each in own if each.state == "succeeded"), None)
    if own and own[0].state == "running":
        return "replaying", f"a replay runs since {in_utc(own[0].started_at)}"
    above = next((each for each in known.upstream if _overlaps(interval, each.start, each.end)), None)
    if above is not None and (done is None or _time(above) > _time(done)):
        name = "a pipeline above it" if above.pipeline in known.hidden else above.pipeline
        return "stale", f"{name} was replayed at {in_utc(_time(above))}, and these rows were not recomputed"
    if own and own[0] is not done:
        return "failed", f"the replay of {in_utc(own[0].started_at)} {_ended(own[0])}"
    if done is not None:
        return "replayed", f"replayed at {in_utc(_time(done))}, {counted(done.published, 'row')}"
    if known.closed is None or interval.end + known.lookahead > known.closed:
        return "open", "the live query has not finished it: no replay is possible yet"
    if any(_overlaps(interval, start, end) for start, end in known.published):
        return "published", "published by drains"
    if known.first is None or interval.end <= known.first:
        return "unrecorded", "before the first rows that records know of"
    return "nothing", "no published rows are recorded"


def _overlaps(interval: Interval, start: datetime, end: datetime) -> bool:
    return start < interval.end and end > interval.start


def _time(replay: RecordedReplay) -> datetime:
    return replay.ended_at or replay.started_at


def _ended(replay: RecordedReplay) -> str:
    return "was stopped" if replay.state == "stopped" else "failed"


def spans(actions: Iterable[Mapping[str, Any]], column: str) -> list[Span]:
    """Return the event times of files by their statistics, in order, those that overlap as one."""
    found = sorted(each for action in actions if (each := _span(action, column)) is not None)
    merged = list[Span]()
    for start, end in found:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _span(action: Mapping[str, Any], column: str) -> Span | None:
    stats = read_json(str(action.get("stats") or "{}"))
    least, most = (stats.get(which, {}).get(column) for which in ("minValues", "maxValues"))
    if least is None or most is None:
        return None
    # Delta cuts times in statistics to milliseconds.
    return of_statistics(least), of_statistics(most) + timedelta(milliseconds=1)
