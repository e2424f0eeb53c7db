"""What the demo prints at its end: runs, comparisons, differences, and where to look next."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dev.demo.checks import WrongCount
from dev.demo.line import PIPELINES, DagRun, Line
from dev.demo.rows import Comparison, Row
from drawdown.metastore.records import Run

_SHOWN_ROWS = 5
_VERDICT_STYLE = {"pass": "green", "warn": "yellow", "fail": "red", "error": "red"}


def runs_table(days: Sequence[DagRun], idle: DagRun) -> Table:
    """One line per pipeline and run, from the metastore; fits into 80 columns."""
    table = _table("What the runs did", "pipeline")
    for column in ("read", "mal-\nformed", "fu-\nture", "quaran-\ntined", "late", "pub-\nlished"):
        table.add_column(column, justify="right")
    table.add_column("watermark", no_wrap=True)
    table.add_column("verdict")
    table.add_column("s", justify="right")
    for number, day in enumerate(days, start=1):
        table.add_row(f"[bold]day {number}[/]")
        for pipeline in PIPELINES:
            table.add_row(
                pipeline, *_run_cells(day.runs.get(pipeline)), end_section=pipeline == PIPELINES[-1]
            )
    table.add_row("[bold]nothing new[/]", *["-"] * 6, "no Spark", "", f"{idle.seconds:.3g}")
    return table


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """One line per table: rows here, rows DuckDB makes of the raw data, and whether they are the same."""
    table = _table("Rows against DuckDB over the raw data", "table")
    table.add_column("rows", justify="right")
    table.add_column("DuckDB", justify="right")
    table.add_column("same")
    for each in comparisons:
        same = (
            "[green]equal[/]"
            if each.equal
            else f"[red]{len(each.missing)} missing, {len(each.surplus)} surplus[/]"
        )
        table.add_row(each.table, str(each.found.total), str(each.expected.total), same)
    return table


def print_differences(
    console: Console,
    comparisons: Sequence[Comparison],
    wrong: Sequence[WrongCount],
    unbalanced: Sequence[str],
) -> None:
    """The first differing rows of each table, and every count that is wrong."""
    for each in comparisons:
        for label, rows in (("missing", each.missing), ("surplus", each.surplus)):
            for row in rows[:_SHOWN_ROWS]:
                console.print(f"[red]{each.table}, {label}:[/] {escape(_text(row))}")
    for count in wrong:
        console.print(
            f"[red]day {count.day}, {count.pipeline}:[/] {count.count} is {count.found}, "
            f"DuckDB says {count.expected}"
        )
    for run_id in unbalanced:
        console.print(f"[red]run {run_id}:[/] read is not malformed + future + quarantined + fed")


def print_next(console: Console, line: Line) -> None:
    """Where to look: tables, run records, Airflow."""
    home = _relative(line)
    console.print(
        f"""
[bold]Where to look next[/]
  tables         {home}/storage/tables
  set aside      {home}/storage/quarantine
  pipelines      include/pipelines, a folder each; `drawdown init NAME` adds one
  run records    export DRAWDOWN_METASTORE=sqlite:///{home}/metastore.db
                 .venv/bin/drawdown runs
  Airflow        `make up` keeps one running, with a day of flights; it prints address and login
""",
        highlight=False,
    )


def _table(title: str, first_column: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    table.add_column(first_column, no_wrap=True)
    return table


def _run_cells(run: Run | None) -> list[str]:
    if run is None:
        return ["-"] * 6 + ["", "[red]no run[/]", ""]
    counts = run.counts
    numbers = (
        counts.read,
        counts.malformed,
        counts.future,
        counts.quarantined,
        counts.late,
        counts.published,
    )
    verdict = run.verdict or run.state
    seconds = (run.ended_at - run.started_at).total_seconds() if run.ended_at and run.started_at else 0.0
    return [
        *(str(number) if number else "[dim]0[/]" for number in numbers),
        f"{run.watermark:%d %b %H:%M}" if run.watermark else "",
        f"[{_VERDICT_STYLE.get(verdict, 'default')}]{verdict}[/]",
        f"{seconds:.3g}",
    ]


def _text(row: Row) -> str:
    return ", ".join(f"{name}={value}" for name, value in row)


def _relative(line: Line) -> str:
    return str(line.home.relative_to(line.root)) if line.home.is_relative_to(line.root) else str(line.home)
