"""Divide what a Spark application requested and used among its runs, in whole numbers that add up exactly.

Every microsecond of the application is divided equally among the runs that are active in it; time without an
active run (while Spark starts or ends, or in a preflight) is divided equally among all its runs. Processor
time of Spark tasks goes to their run; the rest is divided by the shares of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from drawdown.metastore.columns import microseconds
from drawdown.metastore.records import ApplicationRecord


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """When a run was active, microseconds since 1970 UTC."""

    run_id: str
    start_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class TimeShare:
    """A run's microseconds of the application, and those among them in which no run was active."""

    us: int
    idle_us: int


def usages(
    application: ApplicationRecord,
    end: datetime,
    runs: Mapping[str, tuple[datetime, datetime | None]],
    cpu_us: int | None = None,
    task_us: Mapping[str, int] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the value of `Run.usage` for each run of an application.

    Args:
        end: the end of the application, or its last sign of life.
        runs: start and end by run id; a run without an end lasts until the application's end.
        cpu_us: processor time of the application; None when it is unknown.
        task_us: by run id, the part that is known to come from the run's tasks.
    """
    start = microseconds(application.started_at)
    spans = [TimeSpan(run, microseconds(a), microseconds(b or end)) for run, (a, b) in runs.items()]
    shares = time_shares(start, microseconds(end), spans)
    weights = {run: share.us for run, share in shares.items()}
    cpu = None if cpu_us is None else cpu_shares(cpu_us, task_us or {}, weights)
    extra = apportioned(extra_us(application.price, microseconds(end) - start), weights)
    of_all = {
        "cores": application.cores,
        "memory": application.memory,
        "peak": application.peak_bytes,
        "start_us": application.start_us,
        "price": application.price,
    }
    return {
        run: {
            **asdict(share),
            "cpu_us": None if cpu is None else cpu[run],
            **({"extra_us": extra[run]} if extra[run] else {}),
            **of_all,
        }
        for run, share in shares.items()
    }


def extra_us(price: Mapping[str, str] | None, us: int) -> int:
    """Return the microseconds that are billed for an application beside its own: see Price."""
    startup, minimum = (int((price or {}).get(key, 0)) for key in ("startup_us", "minimum_us"))
    return max(us + startup, minimum) - us


def requests_of(
    requests: Mapping[str, int], runs: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, int]]:
    """Divide an application's requests to object stores by the runs' shares of its time; {} without any."""
    weights = {run: usage["us"] for run, usage in runs.items()}
    parts = {kind: apportioned(times, weights) for kind, times in requests.items() if times and runs}
    return {run: {kind: part[run] for kind, part in parts.items()} for run in runs if parts}


def time_shares(start: int, end: int, spans: Sequence[TimeSpan]) -> dict[str, TimeShare]:
    """Divide the application's time from `start` to `end`; parts of spans outside it do not count."""
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
    """Return each run's own time plus a part of the rest by weight.

    The kernel counts in ticks and Spark in nanoseconds: when the runs' own times add up to more than the
    total, they serve as the weights.
    """
    own = {run: own.get(run, 0) for run in weights}
    rest = total - sum(own.values())
    if rest < 0:
        return apportioned(total, own)
    parts = apportioned(rest, weights)
    return {run: own[run] + parts[run] for run in weights}


def apportioned(total: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Divide a whole number in proportion to weights without a remainder (largest remainders first).

    The parts are equal when all weights are 0.
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
