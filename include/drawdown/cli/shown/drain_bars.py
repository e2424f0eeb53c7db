"""A watcher for terminals: one bar per source, measured against the backlog from the preflight."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from drawdown.application.watcher import Report, Watcher
from drawdown.cli.shown.backlog import progress_of
from drawdown.metastore.records import Batch
from drawdown.plan.preflight import Preflight
from drawdown.sources.findings import backlog_size
from drawdown.spec import Pipeline
from drawdown.values.text import counted

if TYPE_CHECKING:
    from drawdown.workspace import Workspace


@dataclass
class _Bar:
    """The bar of one source: the unit of its backlog and the rows read so far."""

    task: TaskID
    unit: str
    rows: int = 0


class _Mark(SpinnerColumn):
    """Turns while a bar moves; then a tick, or the sign of a run that did not end well."""

    def render(self, task: Task) -> RenderableType:
        return Text.from_markup(task.fields["mark"]) if task.fields["mark"] else super().render(task)


class DrainBars(Watcher):
    """Context manager: shows the bars while it is open."""

    def __init__(self, workspace: Workspace, console: Console) -> None:
        self._storage = workspace.storage
        self._metastore = workspace.metastore
        self._progress = Progress(
            _Mark(finished_text="[green]✓[/]"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[amount]}"),
            TextColumn("[dim]{task.fields[note]}[/]"),
            TimeElapsedColumn(),
            console=console,
        )
        self._spark: TaskID | None = None
        self._sources: dict[str, dict[str, _Bar]] = {}

    def __enter__(self) -> DrainBars:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, sentence: str) -> None:
        """Print a line above the bars."""
        self._progress.print(sentence, markup=False)

    def looked(self, pipeline: Pipeline, found: Preflight) -> None:
        if not found.work:
            self._row(f"{pipeline.name}: nothing new", total=1, completed=1, mark="[green]✓[/]")
            return
        bars = self._sources[pipeline.name] = {}
        for source in pipeline.streaming_sources:
            size = backlog_size(found.backlog.get(source, {}))
            total, unit = size if size and size[0] else (None, "")
            bars[source] = _Bar(self._row(f"{pipeline.name} · {source}", total=total), unit)

    def starting_spark(self) -> None:
        self._spark = self._row("starting Spark")

    def notice(self, pipeline: Pipeline, sentence: str) -> None:
        self.say(f"{pipeline.name}: {sentence}")

    def batch(self, pipeline: Pipeline, batch: Batch) -> None:
        self._spark_is_up()
        checkpoint = self._metastore.active_checkpoint(pipeline.name)
        steps = progress_of(self._storage, checkpoint, batch) if checkpoint else {}
        for source, bar in self._sources[pipeline.name].items():
            bar.rows += int(batch.by_source[source]["read"])
            self._progress.update(
                bar.task,
                advance=steps.get(source, 0),
                note=f"batch {batch.batch_id}, {counted(bar.rows, 'row')}",
            )
            self._show_amount(bar)

    def finished(self, report: Report) -> None:
        self._spark_is_up()
        for bar in self._sources.get(report.pipeline, {}).values():
            if report.error is not None:
                self._progress.update(bar.task, mark="[red]✗[/]", note=f"[red]{escape(report.error.id)}[/]")
                self._progress.stop_task(bar.task)
                continue
            if report.stopped:
                self._progress.update(bar.task, mark="[yellow]-[/]", note="stopped")
                self._progress.stop_task(bar.task)
                continue
            total = self._shown(bar).total
            drained = report.run is None or str(report.run.stop_reason).startswith("drained")
            if total is None or drained:
                self._progress.update(bar.task, total=total or 1, completed=total or 1)
                self._show_amount(bar)
            self._progress.stop_task(bar.task)

    def _spark_is_up(self) -> None:
        if self._spark is not None:
            self._progress.remove_task(self._spark)
            self._spark = None

    def _row(self, text: str, total: float | None = None, completed: int = 0, mark: str = "") -> TaskID:
        return self._progress.add_task(text, total=total, completed=completed, amount="", note="", mark=mark)

    def _shown(self, bar: _Bar) -> Task:
        return self._progress.tasks[self._progress.task_ids.index(bar.task)]

    def _show_amount(self, bar: _Bar) -> None:
        task = self._shown(bar)
        if bar.unit and task.total is not None:
            done = min(int(task.completed), int(task.total))
            amount = f"{done:,}/{int(task.total):,} {bar.unit}"
            self._progress.update(bar.task, amount=amount)
