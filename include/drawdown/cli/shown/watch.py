"""What a watch shows while it goes on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from drawdown.application.watcher import Watcher

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from drawdown.metastore.records import Batch, Verdict
    from drawdown.spec import Pipeline


class WatchScreen(Watcher):
    """One line a batch and a verdict; on a terminal, what the query is doing below them."""

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
            + (f", {aside:,} set aside" if aside else "")
            + (f", {counts.late:,} late" if counts.late else "")
        )

    def judged(self, pipeline: Pipeline, verdict: Verdict, published: int) -> None:
        if verdict.last_batch >= 0:
            batches = f"batches {verdict.first_batch} to {verdict.last_batch}"
            self.say(f"{pipeline.name}: {batches}: {verdict.outcome}, {published:,} row(s) published")

    def progress(self, pipeline: Pipeline, entry: dict[str, Any]) -> None:
        if self._status is not None:
            took = entry["duration_ms"].get("triggerExecution", 0)
            watermark = f", watermark {entry['watermark']}" if entry["watermark"] else ""
            last = f"batch {entry['batch_id']} took {took:,} ms{watermark}"
            self._status.update(f"{pipeline.name}: {entry['status']} [dim]({last}; Ctrl-C stops)[/]")
