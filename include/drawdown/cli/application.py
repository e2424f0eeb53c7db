"""One Spark application of a command, told in lines; Ctrl-C stops it before the next batch writes."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from drawdown.cli.interrupt import interruptibly
from drawdown.cli.screen import children_write_to, err

if TYPE_CHECKING:
    from drawdown.application import Application
    from drawdown.metastore import Metastore
    from drawdown.spec import Pipeline, Project
    from drawdown.watcher import Report


def in_application(
    project: Project,
    pipeline: Pipeline,
    metastore: Metastore,
    work: Callable[[Application], list[Report]],
    *,
    command: str,
    quiet: bool,
    **origin: Any,
) -> tuple[list[Report], int | None]:
    """What came of the work, and the signal that has stopped it, if one has.

    Args:
        project: with its logins.
        command: kept in the run records, with who typed it and `origin`.
        quiet: lines go to standard error, as beside ``--json``.
    """
    from drawdown.application import Application, new_run_id
    from drawdown.cli.clustered import clustered
    from drawdown.reporting import LogLines

    about = {"command_id": new_run_id(), "command": command, "by": getpass.getuser(), **origin}
    reports: list[Report] = []
    with (
        clustered(project, metastore, [pipeline], about, drains=False) as conf,
        children_write_to(project.state_dir / "logs" / "spark.log"),
    ):
        lines = LogLines(sys.stderr if quiet or err().is_terminal else None)
        application = Application(project, metastore, conf, about, watcher=lines)
        signal = interruptibly(
            lambda: reports.extend(work(application)),
            application.stop,
            lambda sentence: print(sentence, file=sys.stderr, flush=True),
            lambda: None,
        )
    return reports, signal
