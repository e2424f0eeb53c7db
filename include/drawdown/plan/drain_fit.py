"""Whether what waits fits the bounds of one drain, estimated before the run.

The number of batches follows from the source's own limit per trigger, their time from those of earlier runs.
It is an estimate: a batch of another size takes another time, and what arrives meanwhile is not in it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from drawdown.metastore.records import Run
from drawdown.sources.findings import backlog_size
from drawdown.spec import Pipeline

Fits = Literal["yes", "no", "unknown"]
_LIMITS = {
    "files": {"maxFilesPerTrigger": "files", "maxBytesPerTrigger": "bytes"},
    "offsets": {"maxOffsetsPerTrigger": "offsets"},
}


@dataclass(frozen=True)
class DrainFit:
    """The estimate.

    Attributes:
        fits: whether one drain would empty the backlog.
        batches: how many it needs; None when that cannot be known.
        seconds: how long they take; None when no earlier run tells.
        why: one sentence.
    """

    fits: Fits
    batches: int | None
    seconds: float | None
    why: str


def drain_fit(pipeline: Pipeline, backlog: Mapping[str, Mapping[str, Any]], runs: Iterable[Run]) -> DrainFit:
    """Judge the backlog (`Preflight.backlog`) by ``drain:``, the limits per trigger, and earlier runs."""
    needed = {name: _batches(pipeline, name, found) for name, found in backlog.items()}
    unknown = [name for name, batches in needed.items() if batches is None]
    batches = None if unknown else max((n for n in needed.values() if n is not None), default=0)
    each = _seconds_of_a_batch(runs)
    seconds = None if batches is None or (each is None and batches) else round(batches * (each or 0.0), 1)
    bounds = pipeline.drain
    if bounds.max_batches is None and bounds.max_duration is None:
        return DrainFit(
            "yes", batches, seconds, "`drain:` sets no bound: a run goes on until nothing is left"
        )
    if batches is None:
        why = f"how many batches {', '.join(unknown)} needs cannot be known before Spark plans them"
        return DrainFit("unknown", batches, seconds, why)
    if bounds.max_batches is not None and batches > bounds.max_batches:
        why = f"it needs {batches:,} batches and `drain.max_batches` is {bounds.max_batches:,}"
        return DrainFit("no", batches, seconds, f"{why}: the rest is left for the next run")
    if bounds.max_duration is None or not batches:
        return DrainFit("yes", batches, seconds, f"it needs {batches:,} batch(es)")
    if seconds is None:
        why = "no earlier run tells how long a batch takes, so `drain.max_duration` cannot be judged"
        return DrainFit("unknown", batches, seconds, why)
    estimate = f"{batches:,} batch(es) take about {seconds:,.0f} s, and `drain.max_duration` is"
    limit = bounds.max_duration
    # The bound is asked before each batch: the last one may begin just within it.
    if seconds - seconds / batches >= limit.delta.total_seconds():
        return DrainFit("no", batches, seconds, f"{estimate} {limit.text}: the rest is left for the next run")
    return DrainFit("yes", batches, seconds, f"{estimate} {limit.text}")


def _batches(pipeline: Pipeline, name: str, found: Mapping[str, Any]) -> int | None:
    """Of one source; None where only Spark can tell."""
    size = backlog_size(found)
    if size is None:
        return None
    waiting, unit = size
    if not waiting:
        return 0
    if unit not in _LIMITS:
        # A version of a Delta table may be any number of files.
        return None
    given = pipeline.sources[name].options
    needed = [
        math.ceil((waiting if counted == unit else int(found[counted])) / int(given[option]))
        for option, counted in _LIMITS[unit].items()
        if option in given and str(given[option]).isdigit() and int(given[option])
    ]
    return max(1, *needed) if needed else 1


def _seconds_of_a_batch(runs: Iterable[Run]) -> float | None:
    """The median of those that read something."""
    took = [
        entry["duration_ms"].get("triggerExecution", 0) / 1_000
        for run in runs
        for entry in run.progress
        if entry["rows"]
    ]
    return statistics.median(took) if took else None
