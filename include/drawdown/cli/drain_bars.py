"""A watcher for a terminal: one bar per source against the backlog that the preflight has counted."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from drawdown.application import Report, Watcher
from drawdown.cli.backlog import progress_of
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch
from drawdown.plan.findings import backlog_size
from drawdown.plan.preflight import Preflight
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage


class DrainBars(Watcher):
    """A context manager: the bars are on the screen as long as it is open."""

    def __init__(self, project: Project, metastore: Metastore, console: Console) -> None:
        self._storage = Storage(project.storage_root)
        self._metastore = metastore
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓[/]"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[amount]}"),
            TextColumn("[dim]{task.fields[note]}[/]"),
            TimeElapsedColumn(),
            console=console,
        )
        self._spark: TaskID | None = None
        self._sources: dict[str, TaskID] = {}
        self._units: dict[str, str] = {}
        self._rows: dict[str, int] = {}

    def __enter__(self) -> DrainBars:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, sentence: str) -> None:
        """A line above the bars."""
        self._progress.print(sentence, markup=False)

    def looked(self, pipeline: Pipeline, found: Preflight) -> None:
        self._sources, self._units, self._rows = {}, {}, {}
        if not found.work:
            self._row(f"{pipeline.name}: nothing new", total=1, completed=1)
            return
        for source in pipeline.streaming_sources:
            size = backlog_size(found.backlog.get(source, {}))
            total, self._units[source] = size if size and size[0] else (None, "")
            self._sources[source] = self._row(f"{pipeline.name} · {source}", total=total)

    def starting_spark(self) -> None:
        self._spark = self._row("starting Spark")

    def notice(self, pipeline: Pipeline, sentence: str) -> None:
        self.say(f"{pipeline.name}: {sentence}")

    def batch(self, pipeline: Pipeline, batch: Batch) -> None:
        self._spark_is_up()
        checkpoint = self._metastore.active_checkpoint(pipeline.name)
        steps = progress_of(self._storage, checkpoint, batch) if checkpoint else {}
        for source, task in self._sources.items():
            self._rows[source] = self._rows.get(source, 0) + int(batch.by_source[source]["read"])
            self._progress.update(
                task,
                advance=steps.get(source, 0),
                note=f"batch {batch.batch_id}, {self._rows[source]:,} rows",
            )
            self._show_amount(source)

    def finished(self, report: Report) -> None:
        self._spark_is_up()
        for source, task in self._sources.items():
            if report.error is not None:
                self._progress.update(task, note=f"[red]{escape(report.error.id)}[/]")
                self._progress.stop_task(task)
                continue
            total = self._progress.tasks[self._progress.task_ids.index(task)].total
            drained = report.run is None or str(report.run.stop_reason).startswith("drained")
            if total is None or drained:
                self._progress.update(task, total=total or 1, completed=total or 1)
                self._show_amount(source)
            self._progress.stop_task(task)

    def _spark_is_up(self) -> None:
        if self._spark is not None:
            self._progress.remove_task(self._spark)
            self._spark = None

    def _row(self, text: str, total: float | None = None, completed: int = 0) -> TaskID:
        return self._progress.add_task(text, total=total, completed=completed, amount="", note="")

    def _show_amount(self, source: str) -> None:
        task = self._progress.tasks[self._progress.task_ids.index(self._sources[source])]
        if self._units[source] and task.total is not None:
            done = min(int(task.completed), int(task.total))
            amount = f"{done:,}/{int(task.total):,} {self._units[source]}"
            self._progress.update(self._sources[source], amount=amount)
