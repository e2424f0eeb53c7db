"""One Spark application of a command, told in lines; Ctrl-C stops it before the next batch writes."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from drawdown.cli.interrupt import interruptibly
from drawdown.cli.screen import children_write_to, err

if TYPE_CHECKING:
    from drawdown.application import Application, Report
    from drawdown.metastore import Metastore
    from drawdown.spec import Pipeline, Project


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
    from drawdown.clusters.local import submit_conf
    from drawdown.reporting import LogLines

    application = Application(
        project,
        metastore,
        conf=submit_conf(project, project.clusters[pipeline.cluster]),
        origin={"command_id": new_run_id(), "command": command, "by": getpass.getuser(), **origin},
        watcher=LogLines(sys.stderr if quiet or err().is_terminal else None),
    )
    reports: list[Report] = []
    with children_write_to(project.state_dir / "logs" / "spark.log"):
        signal = interruptibly(
            lambda: reports.extend(work(application)),
            application.stop,
            lambda sentence: print(sentence, file=sys.stderr, flush=True),
            lambda: None,
        )
    return reports, signal
