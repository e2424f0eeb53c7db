"""Estimates how long a run takes by its rows and its cores, from earlier runs on the same profile.

    seconds = f + r(c) · rows

f are the seconds beside the rows: Spark starts, the query is set up, the slice is audited and published. More
cores do not make them fewer. r(c) are the seconds that a row takes on c cores: p + q / c, of which only q is
shared by the cores; p and q are known once runs of two sizes are on record.

Both lines are robust: f and r are the median of the slopes between any two runs (Theil and Sen), so that a
run that met a busy machine does not bend them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import linear_regression, median

from drawdown.cost.crossing import SPREAD
from drawdown.metastore.records import MeasuredRun
from drawdown.spec import Cluster, LocalCluster

_LEAST_OF_A_SIZE = 3
"""Runs of another size that show what its cores give, once the fixed seconds are known."""

_MOST_RUNS = 200
"""The newest of one size: the slopes of all pairs are compared."""


@dataclass(frozen=True)
class TimedRun:
    """One run that had work.

    Attributes:
        cores: that work on its rows.
    """

    rows: int
    seconds: float
    cores: int


@dataclass(frozen=True)
class RunTime:
    """What runs on one profile take.

    Attributes:
        fixed: seconds beside the rows.
        per_row: seconds that a row takes, by the number of cores, for each size on record.
        largest: the most rows that one of the runs read.
        runs: how many were measured.
    """

    fixed: float
    per_row: Mapping[int, float]
    largest: int
    runs: int

    @property
    def is_one_size(self) -> bool:
        """Whether the record does not show yet what more cores give."""
        return len(self.per_row) == 1

    def row_seconds(self, cores: int, *, evenly: bool = False) -> float | None:
        """Return the seconds that a row takes on so many cores; None if the record does not show it.

        Args:
            evenly: while only one size is on record, take the cores to share all of a row's work.
        """
        if cores in self.per_row:
            return self.per_row[cores]
        if not self.is_one_size:
            alone, shared = self._parts()
            return alone + shared / cores
        [(known, seconds)] = self.per_row.items()
        return seconds * known / cores if evenly else None

    def seconds(self, rows: float, cores: int, *, evenly: bool = False) -> float | None:
        """Return what a run takes; None if the record does not show it."""
        each = self.row_seconds(cores, evenly=evenly)
        return None if each is None else self.fixed + each * rows

    def _parts(self) -> tuple[float, float]:
        """Return the parts of a row's seconds that cores do not share, and that they share (p and q)."""
        line = linear_regression([1 / cores for cores in self.per_row], list(self.per_row.values()))
        if line.slope < 0:
            return max(self.per_row.values()), 0.0
        if line.intercept < 0:
            return 0.0, median(cores * seconds for cores, seconds in self.per_row.items())
        return line.intercept, line.slope


def cores_beside(profile: Cluster) -> int:
    """Return the cores of a profile that do not work on rows: those of a cluster's driver."""
    return 0 if isinstance(profile, LocalCluster) else profile.cores


def samples(runs: Sequence[MeasuredRun], profile: Cluster) -> list[TimedRun]:
    """Return the drains on a profile that succeeded, had rows, and whose application was measured."""
    beside = cores_beside(profile)
    return [
        TimedRun(run.rows, run.usage["us"] / 1e6, run.usage["cores"] - beside)
        for run in runs
        if run.kind == "drain" and run.state == "succeeded" and run.rows and run.usage is not None
        if run.usage["start_us"] is not None and run.usage["cores"] > beside
    ]


def run_time(found: Sequence[TimedRun], least: int) -> RunTime | str:
    """Return what runs take, or why the record does not show it.

    Args:
        found: oldest first.
        least: runs of one size that are needed.
    """
    sizes = _by_cores(found)
    most = max(sizes.values(), key=len, default=[])
    if len(most) < least:
        return f"{len(most)} of {least} runs with data needed" + (" on one size" if len(sizes) > 1 else "")
    spread = [size for size in sizes.values() if len(size) >= least and _is_spread(size)]
    if not spread:
        return "the cost per row is unknown, because all runs read about the same number of rows"
    base = max(spread, key=len)
    fixed, slope = _line(base)
    if fixed <= 0:
        return "the fixed cost of a run is unknown, because run time is proportional to rows"
    others = {
        cores: max(0.0, median((each.seconds - fixed) / each.rows for each in size))
        for cores, size in sizes.items()
        if len(size) >= _LEAST_OF_A_SIZE
    }
    return RunTime(fixed, {**others, base[0].cores: slope}, max(each.rows for each in found), len(found))


def throughput(found: Sequence[TimedRun]) -> RunTime:
    """Return what runs take if all their time is taken to be for rows: never less for more rows.

    Args:
        found: at least one.
    """
    per_row = {
        cores: median(each.seconds / each.rows for each in size) for cores, size in _by_cores(found).items()
    }
    return RunTime(0.0, per_row, max(each.rows for each in found), len(found))


def _by_cores(found: Sequence[TimedRun]) -> dict[int, list[TimedRun]]:
    sizes: dict[int, list[TimedRun]] = defaultdict(list)
    for each in found:
        sizes[each.cores].append(each)
    return {cores: size[-_MOST_RUNS:] for cores, size in sizes.items()}


def _is_spread(size: Sequence[TimedRun]) -> bool:
    rows = [each.rows for each in size]
    return max(rows) >= SPREAD * min(rows)


def _line(size: Sequence[TimedRun]) -> tuple[float, float]:
    """Return intercept and slope."""
    pairs = combinations(size, 2)
    slope = median((b.seconds - a.seconds) / (b.rows - a.rows) for a, b in pairs if a.rows != b.rows)
    if slope < 0:
        # More rows took no longer: their time disappears in the fixed cost of each run.
        return median(each.seconds for each in size), 0.0
    return median(each.seconds - slope * each.rows for each in size), slope
