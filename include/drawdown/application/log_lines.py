"""A watcher that prints one line per event: the log of a job, and of a run without a terminal."""

from __future__ import annotations

import sys
from typing import TextIO

from drawdown.application.watcher import Report, Watcher
from drawdown.metastore.records import Batch, Run
from drawdown.plan.preflight import Preflight
from drawdown.spec import Pipeline


class LogLines(Watcher):
    """Progress to ``out`` (default: standard output), errors to standard error; flushed line by line."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out

    def looked(self, pipeline: Pipeline, found: Preflight) -> None:
        self._say(pipeline.name, "; ".join(found.reasons) if found.work else "nothing new")

    def starting_spark(self) -> None:
        self._say("spark", "starting")

    def notice(self, pipeline: Pipeline, sentence: str) -> None:
        self._say(pipeline.name, sentence)

    def batch(self, pipeline: Pipeline, batch: Batch) -> None:
        counts = batch.counts
        self._say(pipeline.name, f"batch {batch.batch_id}: {counts.read:,} read, {counts.staged:,} staged")

    def finished(self, report: Report) -> None:
        if report.error is not None:
            say(f"{report.pipeline}: {report.error}", sys.stderr)
        elif report.run is not None:
            self._say(report.pipeline, summary(report.run))

    def _say(self, who: str, what: str) -> None:
        say(f"{who}: {what}", self._out or sys.stdout)


def say(text: str, out: TextIO) -> None:
    """In one write with the end of its line: `print` makes two, and Spark's log comes between them."""
    out.write(f"{text}\n")
    out.flush()


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
