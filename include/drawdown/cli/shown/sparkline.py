"""A line of bars as high as a character, oldest first: how many rows the last runs read."""

from __future__ import annotations

from collections.abc import Sequence

from drawdown.metastore.records import Run

_BARS = "▁▂▃▄▅▆▇█"
_UNKNOWN = "·"


def rows_read(runs: Sequence[Run]) -> list[int | None]:
    """Return the rows that runs read, oldest first; None where they are not known.

    Args:
        runs: newest first.
    """
    return [run.counts.read if run.counted else None for run in reversed(runs)]


def sparkline(values: Sequence[float | None]) -> str:
    """The greatest value is a whole bar; 0 the lowest; a dot means unknown."""
    greatest = max((value for value in values if value), default=0)
    return "".join(
        _UNKNOWN if value is None else _BARS[_step(value, greatest) if greatest else 0] for value in values
    )


def _step(value: float, greatest: float) -> int:
    # Only 0 is the lowest bar, so a run that read little differs from one that read nothing.
    return max(1, round(value / greatest * (len(_BARS) - 1))) if value else 0
