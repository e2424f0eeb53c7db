"""Computes the schedule at which drains cost as much as an always-on stream.

With f the seconds that a run takes before and beside its rows, r those that a row takes, R the rows of a day
and s the part of an always-on application that would be this pipeline's, runs every T seconds take

    86,400 / T · f  +  r · R    seconds a day, and always on is    86,400 · s.

Both are seconds of the same profile, so its price plays no part, and they are equal at

    T = f / (s - r · R / 86,400).

f and r are the line through what runs took, by their rows (least squares).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import StatisticsError, linear_regression

LEAST_RUNS = 10
"""With fewer runs a fitted line means little."""

SPREAD = 2
"""The largest run must have this many times the rows of the smallest, else no line is fitted."""

_DAY = 86_400


@dataclass(frozen=True)
class Crossing:
    """In seconds; ``every`` is None if always on is cheaper at any schedule, because rows alone fill its
    time."""

    fixed: float
    per_row: float
    every: float | None


def crossing(runs: Sequence[tuple[int, int]], rows_per_day: Fraction, part: Fraction) -> Crossing | str:
    """Return the break-even schedule, or why it is unknown.

    Args:
        runs: rows and microseconds of each run that had work.
        part: of an always-on application, between 0 and 1.
    """
    if len(runs) < LEAST_RUNS:
        return f"{len(runs)} of {LEAST_RUNS} runs with data needed"
    rows = [float(each) for each, _ in runs]
    if max(rows) < SPREAD * min(rows):
        return "the cost per row is unknown, because all runs read about the same number of rows"
    try:
        line = linear_regression(rows, [us / 1e6 for _, us in runs])
    except StatisticsError:
        return "none of its runs read a row"
    per_row, fixed = line.slope, line.intercept
    if per_row < 0:
        # More rows took no longer: their time disappears in the fixed cost of each run.
        per_row, fixed = 0.0, sum(us for _, us in runs) / 1e6 / len(runs)
    if fixed <= 0:
        return "the fixed cost of a run is unknown, because run time is proportional to rows"
    left = float(part) - per_row * float(rows_per_day) / _DAY
    return Crossing(fixed, per_row, fixed / left if left > 0 else None)
