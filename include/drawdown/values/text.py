"""Counts and times as people read them: one way of saying each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun: ``1 file``, ``1,200 files``, ``2 batches``.

    Args:
        plural: of a noun that takes neither ``s`` nor, as ``batch`` does, ``es``.
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {plural or _plural(noun)}"


def sized(number: int) -> str:
    """A number of bytes: ``900 bytes``, ``64.0 MiB``."""
    if number < 1024:
        return counted(number, "byte")
    size, unit = number / 1024, "KiB"
    for larger in ("MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:,.1f} {unit}"


def utc(at: datetime) -> str:
    """A time to the second: ``2026-01-31 09:30:00 UTC``. One without a zone is UTC."""
    return f"{in_utc(at)} UTC"


def in_utc(at: datetime) -> str:
    """As `utc`, for a column whose head says that it is UTC."""
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return f"{at:%Y-%m-%d %H:%M:%S}"


def lasting(time: timedelta) -> str:
    """A length of time in words, to the second: ``30 minutes``, ``1 day 2 hours``."""
    left, parts = int(time.total_seconds()), []
    for seconds, unit in _UNITS:
        number, left = divmod(left, seconds)
        if number:
            parts.append(counted(number, unit))
    return " ".join(parts) or "less than a second"


def _plural(noun: str) -> str:
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"
