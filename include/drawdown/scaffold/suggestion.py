"""What a sample suggests for a new pipeline: watermark, key, rules and expectations.

Every suggestion holds for all rows of the sample; none is made from what the sample does not show.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from drawdown.scaffold.column_types import SampleColumn, time_of
from drawdown.scaffold.sample import Sample

_DELAYS: Mapping[str, timedelta] = {
    "10 minutes": timedelta(minutes=10),
    "1 hour": timedelta(hours=1),
    "6 hours": timedelta(hours=6),
    "1 day": timedelta(days=1),
    "7 days": timedelta(days=7),
}
_EVENT = re.compile(r"(event|occurred|created|happened|sent|recorded|order)", re.IGNORECASE)
_MOMENT = re.compile(r"(_at|_ts|_time|time|timestamp|ts|date)$", re.IGNORECASE)
_KEY = re.compile(r"(^|_)(id|key|uuid|guid|number|code)$", re.IGNORECASE)
_ENOUGH_ROWS = 20
_FEW_VALUES = 10
_NOT_NULL = 5
_NUMBERS = ("BIGINT", "INT", "DOUBLE", "FLOAT", "DECIMAL")


@dataclass(frozen=True)
class EventTime:
    """The column that could carry the watermark.

    Attributes:
        delay: as the spec writes it, at least ``late``.
        late: how far behind the newest row before it a row of the sample came.
        in_past: whether no row is dated ahead of the clock.
    """

    column: SampleColumn
    delay: str
    late: timedelta
    in_past: bool


@dataclass(frozen=True)
class Suggestion:
    """What the folder of a new pipeline says beside the columns.

    Attributes:
        key: a column without missing or repeated values.
        never_negative, never_missing: columns that are so in each row.
        few_values: text columns with a handful of values, by column those values.
    """

    event_time: EventTime | None
    key: SampleColumn | None
    never_negative: tuple[SampleColumn, ...]
    never_missing: tuple[SampleColumn, ...]
    few_values: Mapping[SampleColumn, tuple[str, ...]]


def suggest(sample: Sample) -> Suggestion:
    """What the rows of a sample suggest."""
    full = [column for column in sample.columns if len(sample.values(column)) == len(sample.rows)]
    event_time = _event_time(sample, full)
    key = next((column for column in full if _is_key(sample, column)), None)
    first = [column for column in (key, event_time and event_time.column) if column]
    others = [column for column in full if column not in first]
    return Suggestion(
        event_time,
        key,
        tuple(column for column in full if _is_number(column) and _never_negative(sample.values(column))),
        (*first, *others)[:_NOT_NULL],
        _few_values(sample, full),
    )


def _event_time(sample: Sample, full: Sequence[SampleColumn]) -> EventTime | None:
    # Spark's withWatermark takes a column by a name that needs no quotes.
    times = [column for column in full if column.type == "TIMESTAMP" and column.plain_name == column.name]
    if not times:
        return None
    column = max(times, key=lambda each: (bool(_EVENT.search(each.name)), bool(_MOMENT.search(each.name))))
    moments = [found for value in sample.values(column) if (found := time_of(value, column))]
    newest, late = moments[0], timedelta()
    for moment in moments:
        newest = max(newest, moment)
        late = max(late, newest - moment)
    delay = next(
        (text for text, bound in _DELAYS.items() if bound >= max(late, timedelta(hours=1))), "7 days"
    )
    return EventTime(column, delay, late, newest <= datetime.now(UTC))


def _is_key(sample: Sample, column: SampleColumn) -> bool:
    if column.type not in ("BIGINT", "INT", "STRING") or not _KEY.search(column.plain_name):
        return False
    values = sample.values(column)
    return len(values) > 1 and len(set(values)) == len(values)


def _is_number(column: SampleColumn) -> bool:
    return column.type.startswith(_NUMBERS) and not _KEY.search(column.plain_name)


def _never_negative(values: Sequence[Any]) -> bool:
    return all(float(value) >= 0 for value in values)


def _few_values(sample: Sample, full: Sequence[SampleColumn]) -> Mapping[SampleColumn, tuple[str, ...]]:
    if len(sample.rows) < _ENOUGH_ROWS:
        return {}
    distinct = {column: set(sample.values(column)) for column in full if column.type == "STRING"}
    return {
        column: tuple(sorted(values)) for column, values in distinct.items() if 1 < len(values) <= _FEW_VALUES
    }
