"""What an application tells of its runs while they go on, and at the end of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drawdown.errors import DrawdownError
from drawdown.metastore.records import Batch, Run, Verdict
from drawdown.plan.preflight import Preflight
from drawdown.spec import Pipeline


class Watcher:
    """What a caller may want to hear of; every method may be left as it is.

    Pipelines that are drained together are reported in turn: one method is called at a time.
    """

    def looked(self, pipeline: Pipeline, found: Preflight) -> None:
        """Before a pipeline: whether there is work, why, and how much."""

    def starting_spark(self) -> None:
        """Once, before the first drain."""

    def notice(self, pipeline: Pipeline, sentence: str) -> None:
        """A sentence that a person should read."""

    def batch(self, pipeline: Pipeline, batch: Batch) -> None:
        """A batch is staged and noted."""

    def progress(self, pipeline: Pipeline, entry: dict[str, Any]) -> None:
        """Spark has committed a batch, or stands before it; an entry of ``Run.progress``."""

    def judged(self, pipeline: Pipeline, verdict: Verdict, published: int) -> None:
        """A slice was audited, and so many rows were published."""

    def finished(self, report: Report) -> None:
        """After a pipeline."""


@dataclass(frozen=True)
class Report:
    """How it went for one pipeline: a run, an error, or neither when there was nothing new."""

    pipeline: str
    run: Run | None = None
    error: DrawdownError | None = None
