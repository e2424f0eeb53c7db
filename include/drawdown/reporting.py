"""A watcher that prints one line per event: the log of a job, and of a run without a terminal."""

from __future__ import annotations

import sys

from drawdown.application import Report, Watcher
from drawdown.metastore.records import Batch, Run
from drawdown.plan.preflight import Preflight
from drawdown.spec import Pipeline


class LogLines(Watcher):
    """Progress to standard output, errors to standard error; flushed line by line."""

    def looked(self, pipeline: Pipeline, found: Preflight) -> None:
        _say(pipeline.name, "; ".join(found.reasons) if found.work else "nothing new")

    def starting_spark(self) -> None:
        _say("spark", "starting")

    def batch(self, pipeline: Pipeline, batch: Batch) -> None:
        counts = batch.counts
        _say(pipeline.name, f"batch {batch.batch_id}: {counts.read:,} read, {counts.staged:,} staged")

    def finished(self, report: Report) -> None:
        if report.error is not None:
            print(f"{report.pipeline}: {report.error}", file=sys.stderr, flush=True)
        elif report.run is not None:
            _say(report.pipeline, summary(report.run))


def summary(run: Run) -> str:
    """One line: what was read, what became of it, the verdict."""
    counts = run.counts
    parts = [
        f"{counts.read:,} read = {counts.malformed:,} malformed + {counts.future:,} in the future"
        f" + {counts.quarantined:,} quarantined + {counts.fed:,} fed",
        f"{counts.late:,} late",
        f"{counts.published:,} published",
        f"verdict {run.verdict}",
        str(run.stop_reason),
    ]
    return "; ".join(parts)


def _say(who: str, what: str) -> None:
    print(f"{who}: {what}", flush=True)
