"""A watch in a thread of its own: land data, wait for a fact, stop it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from drawdown.application import SparkApplication
from drawdown.application.watcher import Report, Watcher
from drawdown.metastore.records import Batch, Run, Verdict
from drawdown.spec import Pipeline, load_pipeline
from drawdown.spec.scheduling.trigger import parse_trigger
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox

_SECONDS = 90.0


@dataclass
class Watched(Watcher):
    """What a watch said, and how it ended; ``on_batch`` is called while a batch is under way."""

    on_batch: Callable[[], None] = lambda: None
    published: int = 0
    entries: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)

    def batch(self, pipeline: Pipeline, batch: Batch) -> None:
        self.on_batch()

    def judged(self, pipeline: Pipeline, verdict: Verdict, published: int) -> None:
        self.published += published

    def progress(self, pipeline: Pipeline, entry: dict[str, Any]) -> None:
        self.entries.append(entry)

    def notice(self, pipeline: Pipeline, sentence: str) -> None:
        self.notices.append(sentence)

    @property
    def run(self) -> Run:
        """The record of a watch that ended well."""
        [report] = self.reports
        if report.error is not None:
            raise report.error
        assert report.run is not None
        return report.run

    def awaited(self) -> None:
        """Wait until it has ended by itself."""
        patience = time.monotonic() + _SECONDS
        while not self.reports:
            assert time.monotonic() < patience, "the watch did not end"
            time.sleep(0.1)

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a fact; a watch that has ended before it holds is an error."""
        patience = time.monotonic() + _SECONDS
        while not holds():
            assert not self.reports, self.reports
            assert time.monotonic() < patience, "the watch did not come to it"
            time.sleep(0.1)


@contextmanager
def watching(
    sandbox: Sandbox, name: str, trigger: str = "default", on_batch: Callable[[], None] = lambda: None
) -> Iterator[Watched]:
    """A pipeline is watched as long as the block goes on; then it is stopped as Ctrl-C stops it."""
    watched = Watched(on_batch)
    project = sandbox.project
    with sandbox.metastore() as metastore:
        application = SparkApplication(Workspace(project, metastore), session=sandbox.spark, watcher=watched)
        pipeline, wanted = load_pipeline(project, name), parse_trigger(trigger)
        thread = threading.Thread(
            target=lambda: watched.reports.append(application.watch(pipeline, wanted)), daemon=True
        )
        thread.start()
        try:
            yield watched
        finally:
            application.stop.set()
            thread.join(_SECONDS)
    assert not thread.is_alive(), "the watch did not stop"
