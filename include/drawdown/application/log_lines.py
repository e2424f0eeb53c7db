"""A watcher that prints one line per event: the log of a job, and of a run without a terminal."""

from __future__ import annotations

import re
import sys
from typing import TextIO

from drawdown.application.watcher import Report, Watcher
from drawdown.errors import DrawdownError
from drawdown.metastore.records import Batch, Run
from drawdown.plan.preflight import Preflight
from drawdown.spec import Pipeline


class LogLines(Watcher):
    """Progress to ``out`` (default: standard output), errors to standard error; flushed line by line.

    Args:
        errors: whether to print them: a command on a terminal shows them itself.
    """

    def __init__(self, out: TextIO | None = None, *, errors: bool = True) -> None:
        self._out, self._errors = out, errors

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
        if report.error is not None and self._errors:
            say(error_lines(report.error, report.pipeline), sys.stderr)
        elif report.error is None and report.run is not None:
            self._say(report.pipeline, summary(report.run))

    def _say(self, who: str, what: str) -> None:
        say(f"{who}: {what}", self._out or sys.stdout)


ERROR = "ERROR "
_BEGINS_ERROR = re.compile(rf"{ERROR}(?:[a-z][a-z0-9_]*: )?[a-z0-9-]+\.[a-z0-9-]+: ")


def error_lines(error: DrawdownError, pipeline: str | None = None) -> str:
    """An error as a job prints it: ``ERROR``, pipeline, id and what; all further lines are indented."""
    first, *others = str(error).splitlines()
    about = f"{pipeline}: " if pipeline else ""
    return "\n".join(
        [f"{ERROR}{about}{first}", *(each if each.startswith(" ") else f"  {each}" for each in others)]
    )


def begins_error(line: str) -> bool:
    """Whether it is the first of `error_lines`."""
    return _BEGINS_ERROR.match(line) is not None


def say(text: str, out: TextIO) -> None:
    """Write text and line end in one call: `print` makes two, and Spark's log can come between them."""
    out.write(f"{text}\n")
    out.flush()


def summary(run: Run) -> str:
    """Return one line: rows read, their fates, the verdict."""
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
