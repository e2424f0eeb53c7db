"""Runs a command's Spark application and prints its progress; Ctrl-C stops before the next batch writes."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from drawdown.cli.interrupt import interruptibly
from drawdown.cli.screen import children_write_to, err, show_error

if TYPE_CHECKING:
    from drawdown.application import SparkApplication
    from drawdown.application.watcher import Report
    from drawdown.spec import Pipeline
    from drawdown.workspace import Workspace


def in_application(
    workspace: Workspace,
    pipeline: Pipeline,
    work: Callable[[SparkApplication], list[Report]],
    *,
    command: str,
    **origin: Any,
) -> tuple[list[Report], int | None]:
    """Do the work and show its errors; return the reports and the signal that stopped it, if any.

    Args:
        project: with its logins.
        command: kept in the run records, with the user and `origin`.
    """
    from drawdown.application import SparkApplication, new_run_id
    from drawdown.application.log_lines import LogLines
    from drawdown.launch.clustered import clustered
    from drawdown.launch.loss import explain_loss

    about = {"command_id": new_run_id(), "command": command, "by": getpass.getuser(), **origin}
    reports: list[Report] = []
    on_terminal = err().is_terminal
    with (
        clustered(workspace, [pipeline], about, drains=False) as conf,
        children_write_to(workspace.project.state_dir / "logs" / "spark.log"),
    ):
        watcher = LogLines(sys.stderr, errors=not on_terminal)
        application = SparkApplication(workspace, conf, about, watcher=watcher, explain_loss=explain_loss)
        signal = interruptibly(
            lambda: reports.extend(work(application)),
            application.stop,
            lambda sentence: print(sentence, file=sys.stderr, flush=True),
            lambda: None,
        )
    for report in reports:
        if report.error is not None and on_terminal:
            show_error(report.error)
    return reports, signal
