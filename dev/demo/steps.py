"""Progress of the demo: a live line with seconds while a step lasts, one line when it is done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


@dataclass(frozen=True)
class Step:
    """A step under way; ``say`` shows what it is at."""

    title: str
    progress: Progress
    task: TaskID

    def say(self, detail: str) -> None:
        self.progress.update(self.task, detail=escape(detail))


@dataclass
class Steps:
    """Runs steps one after the other and keeps their seconds."""

    console: Console
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Show that a step lasts, and what it took; an error passes through."""
        if not self.console.is_terminal:
            self.console.print(f"… {title}")
        started = time.monotonic()
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[detail]}"),
        )
        live = Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal)
        with live as progress:
            yield Step(title, progress, progress.add_task(title, total=None, detail=""))
        took = time.monotonic() - started
        self.seconds[title] = took
        self.console.print(f"[green]✓[/] {title} [dim]{took:.1f} s[/]")

    @property
    def total(self) -> float:
        return sum(self.seconds.values())
