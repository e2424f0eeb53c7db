"""`drawdown backfill`: replay intervals of a pipeline here; the same code as the replay DAG's job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic_core import PydanticCustomError

from drawdown.cli.application import in_application
from drawdown.cli.arguments import Json, Name
from drawdown.cli.screen import out, print_json
from drawdown.credentials import collect
from drawdown.errors import SpecError
from drawdown.spec import Duration, load_pipeline, load_project
from drawdown.values.interval import Interval
from drawdown.values.text import counted, utc

if TYPE_CHECKING:
    from drawdown.application.watcher import Report
    from drawdown.spec import Pipeline, Project

From = Annotated[
    str | None,
    typer.Option("--from", help="Start of the range of event time, in UTC.", show_default=False),
]
To = Annotated[str | None, typer.Option("--to", help="End of the range, exclusive.", show_default=False)]
Step = Annotated[
    str | None,
    typer.Option(
        "--interval", help="Length of one interval; default: the one in `replay:`.", show_default=False
    ),
]


def backfill(
    name: Name,
    start: From = None,
    end: To = None,
    interval: Step = None,
    as_json: Json = False,
) -> None:
    """Recompute and replace intervals of a pipeline's output while its drains go on.

    Each interval is replaced in one commit, one after the other; the first failure ends the command. Running
    the command again gives the same table. Without --from and --to it says which intervals are possible now.
    """
    from drawdown.application import exit_code
    from drawdown.sources.replay_basis import replay_of

    project = load_project()
    pipeline = load_pipeline(project, name)
    if start is None and end is None:
        return _show_possible(project, pipeline, as_json)
    if start is None or end is None:
        raise SpecError(
            "replay.interval",
            "an interval needs both --from and --to",
            do=f"`drawdown backfill {name}` says which intervals are possible now",
        )
    length = replay_of(pipeline).interval.delta if interval is None else _length(interval)
    intervals = list(Interval.parse(start, end).parts(length))
    reports, signal = _replay(project, pipeline, intervals)
    if as_json:
        print_json([_values(interval, report) for interval, report in zip(intervals, reports, strict=False)])
    else:
        _show(intervals, reports)
    raise typer.Exit(exit_code(reports) if signal is None else 128 + signal)


def _show_possible(project: Project, pipeline: Pipeline, as_json: bool) -> None:
    from drawdown.plan.version_in_use import in_use
    from drawdown.replay.publish import possible_until
    from drawdown.workspace import Workspace

    with Workspace.open(collect(project, [pipeline])) as workspace:
        until = possible_until(workspace, in_use(workspace, pipeline))
    if as_json:
        return print_json({"pipeline": pipeline.name, "until": until.isoformat()})
    sentence = f"{pipeline.name}: intervals that end at or before {utc(until)} can be replayed now"
    out().print(sentence, markup=False)
    return None


def _length(text: str) -> timedelta:
    try:
        length = Duration.parse(text).delta
    except PydanticCustomError:
        length = timedelta(0)
    if not length:
        raise SpecError(
            "replay.interval",
            f"{text!r} is not a length of an interval",
            do='write for example "1 day" or "6 hours"',
        )
    return length


def _replay(
    project: Project, pipeline: Pipeline, intervals: Sequence[Interval]
) -> tuple[list[Report], int | None]:
    """Replay the intervals; return the reports and the signal that stopped it, if any."""
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
    said = f"{done} of {counted(len(intervals), 'interval')} replaced, by {counted(rows, 'row')}"
    out().print(said, markup=False)
