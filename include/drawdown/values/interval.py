"""Event-time intervals of a replay: half open, in UTC, at most as long as the spec's `replay.interval`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from drawdown.errors import SpecError
from drawdown.values.moments import BOUNDS, EARLIEST, LATEST

_DAY = timedelta(days=1)
MOST_PARTS = 100_000
"""Into how many parts an interval is divided at most: 11 years of hours."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, order=True)
class Interval:
    """From `start` (inclusive) to `end` (exclusive); both are timezone-aware.

    Raises:
        SpecError: ``replay.interval``: it ends before it starts.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise SpecError(
                "replay.interval",
                f"an interval from {shown(self.start)} to {shown(self.end)} is empty",
                do="give an end that is later than the start",
            )

    @classmethod
    def parse(cls, start: str, end: str) -> Interval:
        """Parse ISO 8601 text; a time without a zone is UTC. Raises SpecError like `between`, or for invalid
        text."""
        return cls.between(_moment(start), _moment(end))

    @classmethod
    def between(cls, start: datetime, end: datetime) -> Interval:
        """Return the interval that somebody asks for. Raises SpecError like the class, or beyond `BOUNDS`."""
        for at in (start, end):
            if not EARLIEST <= at <= LATEST:
                raise SpecError(
                    "replay.interval",
                    f"an interval can lie between {BOUNDS}, and {at.isoformat()} does not",
                    do="correct the start or the end",
                )
        return cls(start, end)

    def __str__(self) -> str:
        return f"{shown(self.start)} to {shown(self.end)}"

    @property
    def name(self) -> str:
        """Return the interval as part of a folder name."""
        return f"{self.start.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}-{self.end.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}"

    def wider(self, back: timedelta, ahead: timedelta) -> Interval:
        """Return the interval extended on both sides."""
        return Interval(self.start - back, self.end + ahead)

    def parts(self, length: timedelta) -> Iterator[Interval]:
        """Yield consecutive parts of this length; the last one ends with the interval.

        Raises:
            SpecError: ``replay.interval``: more than `MOST_PARTS`.
        """
        if (self.end - self.start) / length > MOST_PARTS:
            raise SpecError(
                "replay.interval",
                f"{self} has more than {MOST_PARTS:,} parts of {length}",
                do="give longer intervals, or an end that is nearer to the start",
            )
        start = self.start
        while start < self.end:
            end = min(start + length, self.end)
            yield Interval(start, end)
            start = end

    @property
    def is_days(self) -> bool:
        """Whether the interval runs from midnight to midnight, UTC."""
        return all((at - EPOCH) % _DAY == timedelta(0) for at in (self.start, self.end))

    def days(self) -> tuple[str, str]:
        """Return the first day whose midnight is in the interval and the first one after it, as ISO dates."""
        first, behind = (
            at if at == at.replace(hour=0, minute=0, second=0, microsecond=0) else at + _DAY
            for at in (self.start.astimezone(UTC), self.end.astimezone(UTC))
        )
        return first.date().isoformat(), behind.date().isoformat()


def shown(at: datetime) -> str:
    """Return a time in the form for commands: 2013-01-01T00:00:00Z."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise SpecError(
            "replay.interval",
            f"{text[:60]!r} is not a time",
            do="write a date or a time in UTC, for example 2013-01-01 or 2013-01-01T06:00:00Z",
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
