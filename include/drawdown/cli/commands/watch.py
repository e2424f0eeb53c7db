"""`drawdown watch`: runs a pipeline on a developer's machine until Ctrl-C."""

from __future__ import annotations

import contextlib
import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.arguments import Json, Name
from drawdown.cli.chosen import chosen
from drawdown.cli.interrupt import interruptibly
from drawdown.cli.screen import children_write_to, err, out, print_json, show_error
from drawdown.credentials import collect
from drawdown.launch.local import submit_conf
from drawdown.spec import load_project
from drawdown.spec.scheduling.trigger import parse_trigger

if TYPE_CHECKING:
    from drawdown.application.watcher import Report

_TRIGGER = 'default, "10 seconds", "continuous: 1 second" or "real-time: 5 minutes".'


def watch(
    name: Name,
    trigger: Annotated[str, typer.Option(help=_TRIGGER)] = "default",
    as_json: Json = False,
) -> None:
    """Run a pipeline until Ctrl-C, on the checkpoint of its drains.

    Each batch is audited and published when it is committed. Ctrl-C stops between two batches, a second one
    stops at once; the next drain continues there. Spark's output goes to .drawdown/logs/spark.log.
    """
    from drawdown.application import SparkApplication, exit_code, new_run_id
    from drawdown.cli.shown.watch import WatchScreen
    from drawdown.workspace import Workspace

    wanted = parse_trigger(trigger, name)
    project = load_project()
    [pipeline] = chosen(project, [name], every=False)
    project = collect(project, [pipeline])
    conf = submit_conf(project, project.clusters[pipeline.cluster])
    reports: list[Report] = []
    with (
        Workspace.open(project) as workspace,
        children_write_to(project.state_dir / "logs" / "spark.log"),
        contextlib.ExitStack() as screen,
    ):
        seen = screen.enter_context(WatchScreen(err()))
        application = SparkApplication(
            workspace,
            conf,
            origin={"command_id": new_run_id(), "command": f"drawdown watch --trigger {wanted}"}
            | {"by": getpass.getuser()},
            watcher=seen,
        )
        signal = interruptibly(
            lambda: reports.append(application.watch(pipeline, wanted)),
            application.stop,
            seen.say,
            screen.close,
        )
    for report in reports:
        _show(report, as_json=as_json)
    raise typer.Exit(128 + signal if signal is not None else exit_code(reports))


def _show(report: Report, *, as_json: bool) -> None:
    from drawdown.cli.shown.runs import run_table, run_values

    if as_json:
        run, error = report.run and run_values(report.run), report.error and report.error.as_dict()
        return print_json({"pipeline": report.pipeline, "run": run, "error": error})
    if report.error is not None:
        show_error(report.error)
    if report.run is not None:
        out().print(run_table([(report.pipeline, report.run)], when=False))
        if report.run.stop_reason:
            out().print(f"{report.pipeline}: {report.run.stop_reason}", markup=False)
    return None
