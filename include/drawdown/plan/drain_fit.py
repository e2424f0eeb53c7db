"""Estimates, before a run, whether the backlog fits the bounds of one drain.

The number of batches follows from the source's limit per trigger, their duration from earlier runs. Batches
of other sizes and data that arrives meanwhile are not considered.
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
from drawdown.values.text import counted

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
        batches: how many it needs; None if unknown.
        seconds: how long they take; None if no earlier run shows it.
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
            "yes", batches, seconds, "the next run processes the whole backlog (`drain:` sets no limit)"
        )
    if batches is None:
        why = f"the number of batches for {', '.join(unknown)} is unknown until Spark plans them"
        return DrainFit("unknown", batches, seconds, why)
    if bounds.max_batches is not None and batches > bounds.max_batches:
        why = f"it needs {batches:,} batches and `drain.max_batches` is {bounds.max_batches:,}"
        return DrainFit("no", batches, seconds, f"{why}: the rest is left for the next run")
    if bounds.max_duration is None or not batches:
        return DrainFit("yes", batches, seconds, f"it needs {counted(batches, 'batch')}")
    if seconds is None:
        why = "no earlier run shows how long a batch takes, so `drain.max_duration` cannot be judged"
        return DrainFit("unknown", batches, seconds, why)
    estimate = f"about {seconds:,.0f} s for {counted(batches, 'batch')}, and `drain.max_duration` is"
    limit = bounds.max_duration
    # The bound is checked before each batch, so the last one may start just within it.
    if seconds - seconds / batches >= limit.delta.total_seconds():
        return DrainFit("no", batches, seconds, f"{estimate} {limit.text}: the rest is left for the next run")
    return DrainFit("yes", batches, seconds, f"{estimate} {limit.text}")


def _batches(pipeline: Pipeline, name: str, found: Mapping[str, Any]) -> int | None:
    """Return the number of batches for one source; None if only Spark can tell."""
    size = backlog_size(found)
    if size is None:
        return None
    waiting, unit = size
    if not waiting:
        return 0
    if unit not in _LIMITS:
        # One version of a Delta table can have any number of files.
        return None
    given = pipeline.sources[name].options
    needed = [
        math.ceil((waiting if counted == unit else int(found[counted])) / int(given[option]))
        for option, counted in _LIMITS[unit].items()
        if option in given and str(given[option]).isdigit() and int(given[option])
    ]
    return max(1, *needed) if needed else 1


def _seconds_of_a_batch(runs: Iterable[Run]) -> float | None:
    """Return the median duration of the batches that read rows."""
    took = [
        entry["duration_ms"].get("triggerExecution", 0) / 1_000
        for run in runs
        for entry in run.progress
        if entry["rows"]
    ]
    return statistics.median(took) if took else None
