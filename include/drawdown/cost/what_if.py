"""Computes what a pipeline would have cost a day on each cluster profile and schedule, from its history.

With λ rows arriving an hour (mean), a run every T seconds reads T/3,600 · λ rows and takes
S = f + r(c) · rows seconds (run_time.py). In a day

    86,400 / T · max(S + startup, minimum)  seconds are billed, and always on 86,400 · s,

where s is the pipeline's part of an always-on application. A row is at most T + S seconds old when readers
see it: it comes just after a run has begun. Runs that take longer than T do not keep up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from statistics import median

from drawdown.cost.bill import Bill, money
from drawdown.cost.crossing import LEAST_RUNS
from drawdown.cost.run_time import RunTime, cores_beside, run_time, samples
from drawdown.metastore.application_shares import extra_us
from drawdown.metastore.records import MeasuredRun
from drawdown.spec import Cluster, LocalCluster, SizedCluster

SCHEDULES: Mapping[str, int | None] = {
    "5 minutes": 300,
    "15 minutes": 900,
    "30 minutes": 1_800,
    "1 hour": 3_600,
    "6 hours": 21_600,
    "1 day": 86_400,
    "always on": None,
}
"""Seconds between the starts of two runs; None: one that never ends."""

_DAY = 86_400


@dataclass(frozen=True)
class ProfileSize:
    """One size of a profile: cores and bytes that are billed, the driver's as well."""

    cluster: str
    cores: int
    memory: int


@dataclass(frozen=True)
class Option:
    """One size on one schedule.

    Attributes:
        schedule: a key of SCHEDULES.
        rows: that a run reads; None always on.
        takes: seconds of a run; None always on.
        beyond: whether a run would read more rows than any run on record.
        oldest: seconds until readers see a row, at most; None if runs do not keep up.
        fresh: whether `freshness:` is met; None without one.
        bill: of a day; None if runs do not keep up.
    """

    size: ProfileSize
    schedule: str
    rows: float | None
    takes: float | None
    beyond: bool
    oldest: float | None
    fresh: bool | None
    bill: Bill | None


@dataclass(frozen=True)
class WhatIf:
    """The answer for one pipeline.

    Attributes:
        runs: that read, in the period.
        days: from the first to the last of them.
        arrivals: rows an hour, or why that is unknown.
        start: seconds until Spark was up (median); None if no run shows it.
        times: by profile, what runs take or why that is unknown.
        beside: by profile, the cores that do not work on rows.
        unknown: by profile, why there are no figures for it.
        cheapest: of the options that are fresh enough, or why none is named.
    """

    pipeline: str
    runs: int
    days: float
    arrivals: float | str
    freshness: timedelta | None
    start: float | None
    times: Mapping[str, RunTime | str]
    beside: Mapping[str, int]
    unknown: Mapping[str, str]
    options: Sequence[Option]
    cheapest: Option | str


@dataclass(frozen=True)
class Asked:
    """A pipeline and what it may run on.

    Attributes:
        part: of an always-on application that would be this pipeline's, between 0 and 1.
    """

    pipeline: str
    clusters: Mapping[str, Cluster]
    freshness: timedelta | None = None
    part: Fraction = Fraction(1)


@dataclass
class _Found:
    times: dict[str, RunTime | str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    options: list[Option] = field(default_factory=list)


def what_if(asked: Asked, runs: Sequence[MeasuredRun]) -> WhatIf:
    """Compute all options of a pipeline.

    Args:
        runs: of the period, oldest first.
    """
    arriving, found = arrivals(runs), _Found()
    for name, profile in asked.clusters.items():
        own = [run for run in runs if run.cluster == name]
        beside = cores_beside(profile)
        found.times[name] = times = run_time(samples(own, profile), LEAST_RUNS) if own else "no run used it"
        if isinstance(times, str):
            found.unknown[name] = times
            continue
        for size in _sizes(name, profile, own):
            each = times.row_seconds(size.cores - beside)
            if each is None:
                ran = " and ".join(str(cores + beside) for cores in sorted(times.per_row))
                found.unknown[name] = (
                    f"it has {size.cores} cores now, its runs had {ran}, and only runs of two sizes show"
                    " what more cores give"
                )
            elif not isinstance(arriving, str):
                found.options += _options(asked, size, times, each, arriving)
    return WhatIf(
        asked.pipeline,
        len(runs),
        _days(runs),
        arriving,
        asked.freshness,
        _start(runs),
        found.times,
        {name: cores_beside(profile) for name, profile in asked.clusters.items()},
        found.unknown,
        found.options,
        _cheapest(asked, found.options),
    )


def arrivals(runs: Sequence[MeasuredRun]) -> float | str:
    """Return how many rows arrive in an hour, or why that is unknown.

    What a run reads has arrived since the one before it began; what waited for the first has no time.
    """
    if any(run.kind == "watch" for run in runs):
        return "`drawdown watch` ran in this period, and when its rows came is not on record"
    if len(runs) < LEAST_RUNS:
        return f"{len(runs)} of {LEAST_RUNS} runs needed"
    if _days(runs) < 1:
        return "needs runs of at least one day"
    return sum(run.rows for run in runs[1:]) / (_days(runs) * 24)


def _sizes(name: str, profile: Cluster, own: Sequence[MeasuredRun]) -> list[ProfileSize]:
    """Return the size that a profile has now; if that depends on the run, each on record that it may have."""
    if isinstance(profile, LocalCluster):
        return [ProfileSize(name, profile.cores, profile.memory_bytes)]
    seen = {run.usage["cores"]: run.usage["memory"] for run in own if run.usage is not None}
    if not isinstance(profile, SizedCluster):
        return [
            ProfileSize(name, cores, memory)
            for cores, memory in sorted(seen.items())
            if cores > profile.cores
        ]
    workers = profile.workers
    if isinstance(workers, int):
        numbers = [workers]
    else:
        ran = {divmod(cores - profile.cores, profile.worker_cores) for cores in seen}
        numbers = sorted(n for n, rest in ran if not rest and workers.min <= n <= workers.max)
    return [
        ProfileSize(
            name, profile.cores + n * profile.worker_cores, profile.memory_bytes + n * profile.worker_bytes
        )
        for n in numbers
    ]


def _options(
    asked: Asked, size: ProfileSize, times: RunTime, row_seconds: float, per_hour: float
) -> Iterator[Option]:
    busy = row_seconds * per_hour / 3_600
    for schedule, every in SCHEDULES.items():
        if every is None:
            keeps_up = busy < asked.part
            fresh = None if asked.freshness is None else keeps_up
            us = round(_DAY * 1_000_000 * asked.part)
            bill = _bill(asked, size, us, us) if keeps_up else None
            yield Option(size, schedule, None, None, False, 0.0 if keeps_up else None, fresh, bill)
            continue
        rows = per_hour * every / 3_600
        takes = times.fixed + row_seconds * rows
        oldest = every + takes if takes < every else None
        fresh = None
        if asked.freshness is not None:
            fresh = oldest is not None and oldest <= asked.freshness.total_seconds()
        us = round(takes * 1e6)
        price = asked.clusters[size.cluster].price
        extra = extra_us(price.recorded if price else None, us)
        runs = _DAY // every
        bill = None if oldest is None else _bill(asked, size, runs * us, runs * (us + extra))
        yield Option(size, schedule, rows, takes, rows > times.largest, oldest, fresh, bill)


def _bill(asked: Asked, size: ProfileSize, us: int, billed_us: int) -> Bill:
    """Return the bill of so many microseconds, at today's price."""
    price = asked.clusters[size.cluster].price
    costs = money(price.recorded if price else None, billed_us * size.cores, billed_us * size.memory)
    return Bill(core_us=us * size.cores, byte_us=us * size.memory, money=costs)


def _cheapest(asked: Asked, options: Sequence[Option]) -> Option | str:
    if asked.freshness is None:
        return "the pipeline has no `freshness:`, so nothing says which schedule is often enough"
    priced = [(each, each.bill) for each in options if each.bill is not None]
    if not priced:
        return "no figure is known"
    if len({tuple(bill.money) for _, bill in priced}) > 1:
        return "the profiles have prices in several currencies, or some have none"
    fresh = [(each, bill) for each, bill in priced if each.fresh]
    if not fresh:
        return "none is fresh enough"
    return min(fresh, key=lambda pair: (*pair[1].money.values(), pair[1].core_us, pair[0].oldest or 0))[0]


def _days(runs: Sequence[MeasuredRun]) -> float:
    return (runs[-1].started_at - runs[0].started_at).total_seconds() / _DAY if runs else 0.0


def _start(runs: Sequence[MeasuredRun]) -> float | None:
    known = [run.usage["start_us"] for run in runs if run.usage is not None]
    starts = [each / 1e6 for each in known if each is not None]
    return median(starts) if starts else None
