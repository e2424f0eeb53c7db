"""`drawdown backfill`: replay intervals of a pipeline here; the same code as the replay DAG's job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drawdown.cli.application import in_application
from drawdown.cli.screen import err, out, print_json, show_error
from drawdown.errors import SpecError

if TYPE_CHECKING:
    from drawdown.application.watcher import Report
    from drawdown.spec import Pipeline, Project
    from drawdown.values.interval import Interval

Name = Annotated[str, typer.Argument(help="The pipeline.", show_default=False)]
From = Annotated[str, typer.Option("--from", help="The first event time, in UTC.", show_default=False)]
To = Annotated[str, typer.Option("--to", help="The first event time behind it.", show_default=False)]
Step = Annotated[
    str | None,
    typer.Option("--interval", help="Replaced at once; by default that of `replay:`.", show_default=False),
]


def backfill(
    name: Name,
    start: From,
    end: To,
    interval: Step = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Compute intervals of a pipeline's output again and replace them, while its drains go on.

    One interval after the other, each in one commit; the first that fails ends the command. The same command
    again gives the same table.
    """
    from drawdown.application import exit_code
    from drawdown.sources.replay_basis import replay_of
    from drawdown.spec import load_pipeline, load_project
    from drawdown.values.interval import Interval

    project = load_project()
    pipeline = load_pipeline(project, name)
    length = replay_of(pipeline).interval.delta if interval is None else _length(interval)
    intervals = list(Interval.parse(start, end).parts(length))
    reports, signal = _replay(project, pipeline, intervals)
    if as_json:
        print_json([_values(interval, report) for interval, report in zip(intervals, reports, strict=False)])
    else:
        _show(intervals, reports)
    raise typer.Exit(exit_code(reports) if signal is None else 128 + signal)


def _length(text: str) -> timedelta:
    from pydantic_core import PydanticCustomError

    from drawdown.spec import Duration

    try:
        length = Duration.parse(text).delta
    except PydanticCustomError:
        length = timedelta(0)
    if not length:
        raise SpecError(
            "replay.interval",
            f"{text!r} is no length of an interval",
            do='write one such as "1 day" or "6 hours"',
        )
    return length


def _replay(
    project: Project, pipeline: Pipeline, intervals: Sequence[Interval]
) -> tuple[list[Report], int | None]:
    """What came of those that were begun, and the signal that stopped it."""
    from drawdown.credentials import collect
    from drawdown.workspace import Workspace

    with Workspace.open(project) as workspace:
        return in_application(
            replace(workspace, project=collect(project, [pipeline])),
            pipeline,
            lambda application: application.replay(pipeline, intervals),
            command="drawdown backfill",
        )


def _values(interval: Interval, report: Report) -> dict[str, Any]:
    from drawdown.cli.shown.runs import run_values

    return {
        "from": interval.start.isoformat(),
        "to": interval.end.isoformat(),
        "run": report.run and run_values(report.run),
        "error": report.error and report.error.as_dict(),
    }


def _show(intervals: Sequence[Interval], reports: Sequence[Report]) -> None:
    done = sum(report.run is not None for report in reports)
    rows = sum(report.run.counts.published for report in reports if report.run is not None)
    out().print(f"{done} of {len(intervals)} intervals replaced, by {rows:,} rows", markup=False)
    for report in reports:
        # Without a terminal the lines have said it already.
        if report.error is not None and err().is_terminal:
            show_error(report.error)
