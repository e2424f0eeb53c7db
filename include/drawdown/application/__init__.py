"""What one Spark application does: which pipelines, in which order, reported while it runs, measured."""

from typing import Any

from drawdown.application.application import SparkApplication, exit_code
from drawdown.application.unstarted import NOTHING_NEW, new_run_id
from drawdown.metastore import Metastore
from drawdown.spec import Project
from drawdown.workspace import Workspace

__all__ = ["NOTHING_NEW", "SparkApplication", "exit_code", "new_run_id"]


def Application(project: Project, metastore: Metastore, *more: Any, **named: Any) -> SparkApplication:
    """Return a SparkApplication: the jobs/ files that an earlier `drawdown init` wrote call this name with
    these arguments."""
    return SparkApplication(Workspace(project, metastore), *more, **named)
