"""The rows of a calendar: intervals of one length, a row for each hour, day, month or year."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from drawdown.values.interval import EPOCH, Interval

Unit = Literal["hour", "day", "month", "year"]
_ROWS: dict[Unit, int] = {"hour": 24, "day": 31, "month": 13, "year": 10}
"""How many rows a page shows."""
SHORTEST = timedelta(minutes=1)
"""Of shorter intervals, a day has more than a page can show."""


@dataclass(frozen=True)
class Grid:
    """The part of the calendar that a page shows: whole rows, up to the one that ``newest`` is in."""

    length: timedelta
    newest: datetime

    @property
    def unit(self) -> Unit:
        """What a row is."""
        if self.length < timedelta(minutes=30):
            return "hour"
        if self.length < timedelta(days=1):
            return "day"
        return "month" if self.length < timedelta(days=7) else "year"

    @property
    def rows(self) -> list[tuple[datetime, datetime]]:
        """Return start and end of each row, oldest first."""
        end = _next(_floor(self.newest, self.unit), self.unit)
        found = list[tuple[datetime, datetime]]()
        for _ in range(_ROWS[self.unit]):
            start = _floor(end - timedelta(microseconds=1), self.unit)
            found.append((start, end))
            end = start
        return found[::-1]

    @property
    def start(self) -> datetime:
        return self.rows[0][0]

    @property
    def end(self) -> datetime:
        return self.rows[-1][1]

    @property
    def columns(self) -> int:
        """How many intervals the longest row has."""
        longest = {"hour": 3_600, "day": 86_400, "month": 31 * 86_400, "year": 366 * 86_400}[self.unit]
        return -int(-longest // self.length.total_seconds())

    def intervals(self, start: datetime, end: datetime) -> Iterator[Interval]:
        """Yield the intervals that begin in this time; they begin at whole multiples since 1970."""
        at = EPOCH - (EPOCH - start) // self.length * self.length
        while at < end:
            yield Interval(at, at + self.length)
            at += self.length

    def column(self, interval: Interval, row: datetime) -> int:
        """Return the position of an interval in the row that begins then."""
        return int((interval.start - row) / self.length)


def _floor(at: datetime, unit: Unit) -> datetime:
    whole = at.replace(minute=0, second=0, microsecond=0)
    if unit == "hour":
        return whole
    whole = whole.replace(hour=0)
    if unit == "day":
        return whole
    return whole.replace(day=1) if unit == "month" else whole.replace(month=1, day=1)


def _next(start: datetime, unit: Unit) -> datetime:
    if unit == "hour":
        return start + timedelta(hours=1)
    if unit == "day":
        return start + timedelta(days=1)
    return _floor(start + timedelta(days=32 if unit == "month" else 370), unit)
