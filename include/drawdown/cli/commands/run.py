"""`drawdown run`: drains, audits and publishes pipelines on this machine, with the code of the DAG's job."""

from __future__ import annotations

import contextlib
import getpass
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drawdown.cli.arguments import Json, Names, Wide
from drawdown.cli.chosen import chosen
from drawdown.cli.interrupt import interruptibly
from drawdown.cli.screen import children_write_to, err, out, print_json, show_error
from drawdown.credentials import collect
from drawdown.errors import DrawdownError, SpecError
from drawdown.spec import load_project

if TYPE_CHECKING:
    from drawdown.application import SparkApplication
    from drawdown.application.watcher import Report
    from drawdown.metastore import Metastore
    from drawdown.metastore.records import Run
    from drawdown.spec import Pipeline
    from drawdown.workspace import Workspace


def run(
    names: Names = None,
    every: Annotated[bool, typer.Option("--all", help="All pipelines of the project.")] = False,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """Drain, audit and publish pipelines in one Spark application, upstream first, the others together.

    Ctrl-C stops before the next batch writes, a second one stops at once. Spark's output goes to
    .drawdown/logs/spark.log.
    """
    from drawdown.application import exit_code
    from drawdown.application.watcher import Report
    from drawdown.workspace import Workspace

    project = load_project()
    pipelines = chosen(project, names or [], every=every)
    _refuse_several_clusters(pipelines)
    with Workspace.open(project) as workspace:
        wrong = _mistakes(workspace, pipelines)
        for error in wrong.values():
            show_error(error)
        right = [pipeline for pipeline in pipelines if pipeline.name not in wrong]
        ended = _drain(workspace, right) if right else _Ended()
        runs = ended.runs(workspace.metastore)
    reports = [*ended.reports, *(Report(name, error=error) for name, error in wrong.items())]
    if as_json:
        print_json([_values(report, runs.get(report.pipeline)) for report in reports])
    else:
        _show(ended.reports, runs, wide=wide)
    code = exit_code(reports) if ended.signal is None else 128 + ended.signal
    if ended.left_behind:
        # Python would wait for threads left by user code, and Spark for its own.
        os._exit(code)
    raise typer.Exit(code)


@dataclass(frozen=True)
class _Ended:
    """The outcome of a command.

    Attributes:
        reports: the report of each pipeline that was started.
        signal: the signal that stopped it.
        left_behind: see SparkApplication.
    """

    command_id: str = ""
    reports: list[Report] = field(default_factory=list)
    signal: int | None = None
    left_behind: list[str] = field(default_factory=list)

    def then(self, later: _Ended) -> _Ended:
        """Return both outcomes, with the later report of each pipeline."""
        reports = {report.pipeline: report for report in (*self.reports, *later.reports)}
        return replace(later, reports=list(reports.values()))

    def runs(self, metastore: Metastore) -> dict[str, Run]:
        """Return the run records of this command by pipeline, including failed runs."""
        of = {"command_id": self.command_id}
        found = (metastore.runs_of_origin(of, pipeline=report.pipeline) for report in self.reports)
        return {run.pipeline: run for runs in found for run in reversed(runs)}


def _mistakes(workspace: Workspace, pipelines: Sequence[Pipeline]) -> dict[str, SpecError]:
    """Return by name what `drawdown validate` finds wrong, before Spark is started."""
    from drawdown.plan.version_in_use import in_use
    from drawdown.static_checks.check import static_errors

    versions = []
    for pipeline in pipelines:
        with contextlib.suppress(DrawdownError):  # the drain reports it, and leaves a record
            versions.append(in_use(workspace, pipeline))
    return static_errors(workspace.project, versions)


def _drain(workspace: Workspace, pipelines: Sequence[Pipeline]) -> _Ended:
    from drawdown.application import new_run_id
    from drawdown.application.suspects import untried

    workspace = replace(workspace, project=collect(workspace.project, pipelines))
    origin = {"command_id": new_run_id(), "command": "drawdown run", "by": getpass.getuser()}
    ended = _drain_once(workspace, pipelines, origin)
    left = list(pipelines)
    # A JVM that ended took others with it: those that were not done are drained in another application.
    while ended.signal is None and not ended.left_behind and untried(workspace.metastore, _dead(ended, left)):
        left = [pipeline for pipeline in left if pipeline.name in _dead(ended, left)]
        ended = ended.then(_drain_once(workspace, left, origin))
    return ended


def _dead(ended: _Ended, pipelines: Sequence[Pipeline]) -> list[str]:
    """Return the pipelines that died with the JVM, and those that did not begin."""
    from drawdown.plan.deaths import DEAD

    errors = {report.pipeline: report.error for report in ended.reports}
    if not any(error is not None and error.id in DEAD for error in errors.values()):
        return []
    done = {name for name, error in errors.items() if error is None or error.id not in DEAD}
    return [pipeline.name for pipeline in pipelines if pipeline.name not in done]


def _drain_once(workspace: Workspace, pipelines: Sequence[Pipeline], origin: dict[str, str]) -> _Ended:
    from drawdown.application import SparkApplication
    from drawdown.launch.clustered import clustered
    from drawdown.launch.loss import explain_loss

    with (
        clustered(workspace, pipelines, origin, drains=True) as conf,
        children_write_to(workspace.project.state_dir / "logs" / "spark.log"),
        contextlib.ExitStack() as screen,
    ):
        application = SparkApplication(workspace, conf, origin, explain_loss=explain_loss)
        say = _watch(application, screen)
        reports: list[Report] = []
        signal = interruptibly(
            lambda: reports.extend(application.drain_all(pipelines)), application.stop, say, screen.close
        )
    return _Ended(origin["command_id"], reports, signal, application.left_behind)


def _watch(application: SparkApplication, screen: contextlib.ExitStack) -> Any:
    """Show bars on a terminal, else lines, on standard error; returns a function that prints a sentence."""
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
            f"one application runs on one cluster, but these pipelines name {', '.join(profiles)}",
            where="`cluster:` in their pipeline.yaml",
            do="run them separately",
        )


def _values(report: Report, run: Run | None) -> dict[str, Any]:
    from drawdown.cli.shown.runs import run_values

    return {
        "pipeline": report.pipeline,
        "run": run and run_values(run),
        "error": report.error and report.error.as_dict(),
    }


def _show(reports: Sequence[Report], runs: dict[str, Run], *, wide: bool) -> None:
    from drawdown.cli.shown.runs import run_table

    rows = [
        (report.pipeline, runs.get(report.pipeline))
        for report in reports
        if not (report.error or report.stopped) or report.pipeline in runs
    ]
    if rows:
        out().print(run_table(rows, when=False, wide=wide))
    for report in reports:
        if report.stopped:
            out().print(f"{report.pipeline}: stopped before it read anything", markup=False)
    for name, run in rows:
        # A bound, a request to stop, or rows that wait behind a held slice.
        if run is not None and run.stop_reason and run.stop_reason != "drained":
            out().print(f"{name}: {run.stop_reason}", markup=False)
    for report in reports:
        # Without a terminal, the progress lines have already said it.
        if report.error is not None and err().is_terminal:
            show_error(report.error)
