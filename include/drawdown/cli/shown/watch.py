"""The screen of a watch."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

from drawdown.application.watcher import Watcher
from drawdown.values.text import counted, utc

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from drawdown.metastore.records import Batch, Verdict
    from drawdown.spec import Pipeline


class WatchScreen(Watcher):
    """Prints one line per batch and verdict; on a terminal, the query's status below them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = console.status("starting Spark") if console.is_terminal else None

    def __enter__(self) -> WatchScreen:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, sentence: str) -> None:
        self._console.print(sentence, markup=False)
        sys.stderr.flush()

    def notice(self, pipeline: Pipeline, sentence: str) -> None:
        self.say(f"{pipeline.name}: {sentence}")

    def batch(self, pipeline: Pipeline, batch: Batch) -> None:
        counts = batch.counts
        aside = counts.read - counts.fed
        self.say(
            f"{pipeline.name}: batch {batch.batch_id}: {counts.read:,} read, {counts.staged:,} staged"
            + (f", {aside:,} quarantined" if aside else "")
            + (f", {counts.late:,} late" if counts.late else "")
        )

    def judged(self, pipeline: Pipeline, verdict: Verdict, published: int) -> None:
        if verdict.last_batch >= 0:
            rows = counted(published, "row")
            self.say(f"{pipeline.name}: {verdict.batches}: {verdict.outcome}, {rows} published")

    def progress(self, pipeline: Pipeline, entry: dict[str, Any]) -> None:
        if self._status is not None:
            took = entry["duration_ms"].get("triggerExecution", 0)
            at = entry["watermark"]
            watermark = f", watermark {utc(datetime.fromisoformat(at))}" if at else ""
            last = f"batch {entry['batch_id']} took {took:,} ms{watermark}"
            self._status.update(f"{pipeline.name}: {entry['status']} [dim]({last}; Ctrl-C stops)[/]")
