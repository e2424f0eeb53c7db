"""Shares of what a Spark application asked for and used, by run: whole numbers that add up exactly.

Every microsecond of the application belongs, in equal parts, to the runs that are going on in it; those in
which none is (Spark starts or ends, a preflight looks) belong to all its runs in equal parts. Processor time
is a run's own where Spark's tasks tell whose it was; the rest goes by the shares of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from drawdown.metastore.columns import microseconds
from drawdown.metastore.records import SparkApplication


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """When a run went on, microseconds since 1970 UTC."""

    run_id: str
    start_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class TimeShare:
    """Microseconds of the application that are a run's, and those among them in which no run went on."""

    us: int
    idle_us: int


def usages(
    application: SparkApplication,
    end: datetime,
    runs: Mapping[str, tuple[datetime, datetime | None]],
    cpu_us: int | None = None,
    task_us: Mapping[str, int] | None = None,
) -> dict[str, dict[str, Any]]:
    """What `Run.usage` keeps of each run of an application.

    Args:
        end: of the application, or the last that was heard of it.
        runs: run id to start and end; a run without an end goes on to that of the application.
        cpu_us: processor time of the application; None when it is not known.
        task_us: of it, what tasks of each run are known to have taken.
    """
    start = microseconds(application.started_at)
    spans = [TimeSpan(run, microseconds(a), microseconds(b or end)) for run, (a, b) in runs.items()]
    shares = time_shares(start, microseconds(end), spans)
    weights = {run: share.us for run, share in shares.items()}
    cpu = None if cpu_us is None else cpu_shares(cpu_us, task_us or {}, weights)
    of_all = {
        "cores": application.cores,
        "memory": application.memory,
        "peak": application.peak_bytes,
        "start_us": application.start_us,
        "price": application.price,
    }
    return {
        run: {**asdict(share), "cpu_us": None if cpu is None else cpu[run], **of_all}
        for run, share in shares.items()
    }


def time_shares(start: int, end: int, spans: Sequence[TimeSpan]) -> dict[str, TimeShare]:
    """The application's time from `start` to `end`, shared; what a span has outside of it does not count."""
    spans = [TimeSpan(s.run_id, *(min(max(t, start), end) for t in (s.start_us, s.end_us))) for s in spans]
    if not spans:
        return {}
    busy = dict.fromkeys((span.run_id for span in spans), 0)
    idle = 0
    moments = sorted({start, end, *(s.start_us for s in spans), *(s.end_us for s in spans)})
    for begin, until in pairwise(moments):
        going_on = [s.run_id for s in spans if s.start_us <= begin and until <= s.end_us]
        if not going_on:
            idle += until - begin
        for run, part in apportioned(until - begin, dict.fromkeys(going_on, 1)).items():
            busy[run] += part
    idles = apportioned(idle, dict.fromkeys(busy, 1))
    return {run: TimeShare(busy[run] + idles[run], idles[run]) for run in busy}


def cpu_shares(total: int, own: Mapping[str, int], weights: Mapping[str, int]) -> dict[str, int]:
    """What each run has of its own, and a part of the rest by weight.

    The kernel counts in ticks and Spark in nanoseconds: where a run's own add up to more than the total,
    they are the weights.
    """
    own = {run: own.get(run, 0) for run in weights}
    rest = total - sum(own.values())
    if rest < 0:
        return apportioned(total, own)
    parts = apportioned(rest, weights)
    return {run: own[run] + parts[run] for run in weights}


def apportioned(total: int, weights: Mapping[str, int]) -> dict[str, int]:
    """A whole number in parts as the weights, without a remainder (largest remainders first).

    In equal parts where nothing has a weight.
    """
    if not any(weights.values()):
        weights = dict.fromkeys(weights, 1)
    whole = sum(weights.values())
    parts = {key: total * weight // whole for key, weight in weights.items()}
    left = total - sum(parts.values())
    behind = sorted(weights, key=lambda key: -(total * weights[key] % whole))
    for key in behind[:left]:
        parts[key] += 1
    return parts
