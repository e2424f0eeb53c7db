"""Points in event time out of text: what people type, and what statistics of files say."""

from __future__ import annotations

from datetime import UTC, datetime

EARLIEST = datetime(300, 1, 1, tzinfo=UTC)
LATEST = datetime(9700, 1, 1, tzinfo=UTC)
"""Python's calendar ends at the years 1 and 9999. An interval, its `lookback:` and its `lookahead:` are up to
100 years each, so arithmetic with what lies between these two stays inside."""
YEARS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""The first and the last microsecond of Python's calendar, the years 1 to 9999, since 1970 UTC."""
BOUNDS = f"the years {EARLIEST.year} and {LATEST.year}"


def clamped(at: datetime) -> datetime:
    """Return the time in UTC, or the bound that it lies beyond; a time without a zone is UTC."""
    known = at if at.tzinfo else at.replace(tzinfo=UTC)
    # Compared before it is converted: near a bound of the calendar, the conversion itself would fail.
    return EARLIEST if known < EARLIEST else LATEST if known > LATEST else known.astimezone(UTC)


def of_statistics(text: str) -> datetime:
    """Return a time that Spark has written, clamped.

    It writes years that Python does not have with a sign: +10000-01-01T00:00:00.000Z.
    """
    if text.startswith(("+", "-")):
        return LATEST if text.startswith("+") else EARLIEST
    return clamped(datetime.fromisoformat(text))
