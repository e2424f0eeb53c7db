"""`drawdown run`: drain, audit and publish pipelines here; the same code as the DAG's job."""

from __future__ import annotations

import contextlib
import getpass
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drawdown.cli.chosen import chosen
from drawdown.cli.screen import children_write_to, err, out, print_json, show_error
from drawdown.errors import SpecError

if TYPE_CHECKING:
    from drawdown.application import SparkApplication
    from drawdown.application.watcher import Report
    from drawdown.metastore import Metastore
    from drawdown.metastore.records import Run
    from drawdown.spec import Pipeline
    from drawdown.workspace import Workspace


def run(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="All pipelines of the project.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Drain, audit and publish pipelines in one Spark application, upstream first, the others together.

    Ctrl-C stops before the next batch writes, a second one ends at once. What Spark prints goes to
    .drawdown/logs/spark.log.
    """
    from drawdown.application import exit_code
    from drawdown.spec import load_project
    from drawdown.workspace import Workspace

    project = load_project()
    pipelines = chosen(project, names or [], every=every)
    with Workspace.open(project) as workspace:
        ended = _drain(workspace, pipelines)
        runs = ended.runs(workspace.metastore)
    if as_json:
        print_json([_values(report, runs.get(report.pipeline)) for report in ended.reports])
    else:
        _show(ended.reports, runs)
    code = exit_code(ended.reports) if ended.signal is None else 128 + ended.signal
    if ended.left_behind:
        # Python would wait for threads that the user's code has left, and Spark for its own.
        os._exit(code)
    raise typer.Exit(code)


@dataclass(frozen=True)
class _Ended:
    """How a command ended.

    Attributes:
        reports: what came of each pipeline that was begun.
        signal: what stopped it.
        left_behind: see SparkApplication.
    """

    command_id: str
    reports: list[Report]
    signal: int | None
    left_behind: list[str]

    def runs(self, metastore: Metastore) -> dict[str, Run]:
        """The run records this command left, of failed runs too, by pipeline."""
        of = {"command_id": self.command_id}
        found = (metastore.runs_of_origin(of, pipeline=report.pipeline) for report in self.reports)
        return {run.pipeline: run for runs in found for run in runs}


def _drain(workspace: Workspace, pipelines: Sequence[Pipeline]) -> _Ended:
    from drawdown.application import SparkApplication, new_run_id
    from drawdown.cli.interrupt import interruptibly
    from drawdown.credentials import collect
    from drawdown.launch.clustered import clustered

    _refuse_several_clusters(pipelines)
    workspace = replace(workspace, project=collect(workspace.project, pipelines))
    origin = {"command_id": new_run_id(), "command": "drawdown run", "by": getpass.getuser()}
    with (
        clustered(workspace, pipelines, origin, drains=True) as conf,
        children_write_to(workspace.project.state_dir / "logs" / "spark.log"),
        contextlib.ExitStack() as screen,
    ):
        application = SparkApplication(workspace, conf, origin)
        say = _watch(application, screen)
        reports: list[Report] = []
        signal = interruptibly(
            lambda: reports.extend(application.drain_all(pipelines)), application.stop, say, screen.close
        )
    return _Ended(origin["command_id"], reports, signal, application.left_behind)


def _watch(application: SparkApplication, screen: contextlib.ExitStack) -> Any:
    """Bars on a terminal, else lines, on standard error; returns what says a sentence."""
    if err().is_terminal:
        from drawdown.cli.shown.drain_bars import DrainBars

        bars = screen.enter_context(DrainBars(application.workspace, err()))
        application.watcher = bars
        return bars.say
    from drawdown.application.log_lines import LogLines

    application.watcher = LogLines(sys.stderr)
    return lambda sentence: print(sentence, file=sys.stderr, flush=True)


def _refuse_several_clusters(pipelines: Sequence[Pipeline]) -> None:
    profiles = sorted({pipeline.cluster for pipeline in pipelines})
    if len(profiles) > 1:
        raise SpecError(
            "cli.several-clusters",
            f"one application runs on one cluster; these pipelines name {', '.join(profiles)}",
            where="`cluster:` in their pipeline.yaml",
            do="run them apart",
        )


def _values(report: Report, run: Run | None) -> dict[str, Any]:
    from drawdown.cli.shown.runs import run_values

    return {
        "pipeline": report.pipeline,
        "run": run and run_values(run),
        "error": report.error and report.error.as_dict(),
    }


def _show(reports: Sequence[Report], runs: dict[str, Run]) -> None:
    from drawdown.cli.shown.runs import run_table

    rows = [
        (report.pipeline, runs.get(report.pipeline))
        for report in reports
        if report.error is None or report.pipeline in runs
    ]
    if rows:
        out().print(run_table(rows, ids=False))
    for name, run in rows:
        # A bound, a wish to stop, or rows that wait behind a held slice.
        if run is not None and run.stop_reason and run.stop_reason != "drained":
            out().print(f"{name}: {run.stop_reason}", markup=False)
    for report in reports:
        # Without a terminal the lines have said it already.
        if report.error is not None and err().is_terminal:
            show_error(report.error)
