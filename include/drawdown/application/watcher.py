"""Callbacks of an application while its runs go on and at the end of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drawdown.errors import DrawdownError
from drawdown.metastore.records import Batch, Run, Verdict
from drawdown.plan.preflight import Preflight
from drawdown.spec import Pipeline


class Watcher:
    """Callbacks; override the ones you need.

    Only one method is called at a time, even when pipelines drain together.
    """

    def looked(self, pipeline: Pipeline, found: Preflight) -> None:
        """Called before a pipeline: whether there is work, why, and how much."""

    def starting_spark(self) -> None:
        """Called once, before the first drain."""

    def notice(self, pipeline: Pipeline, sentence: str) -> None:
        """Called with a sentence for the user."""

    def batch(self, pipeline: Pipeline, batch: Batch) -> None:
        """Called when a batch is staged and recorded."""

    def progress(self, pipeline: Pipeline, entry: dict[str, Any]) -> None:
        """Called with an entry of ``Run.progress``: Spark has committed a batch, or is about to."""

    def judged(self, pipeline: Pipeline, verdict: Verdict, published: int) -> None:
        """Called after an audit, with the number of published rows."""

    def finished(self, report: Report) -> None:
        """Called after a pipeline."""


@dataclass(frozen=True)
class Report:
    """The result for one pipeline: a run, an error, or neither when there was nothing new or it was stopped.

    Attributes:
        stopped: a stop was requested before the run began.
    """

    pipeline: str
    run: Run | None = None
    error: DrawdownError | None = None
    stopped: bool = False
