"""`drawdown upkeep` for a workspace, in this process; a year goes by before it where a test says so."""

from __future__ import annotations

from datetime import timedelta

from drawdown.application import new_run_id
from drawdown.spec import load_pipeline
from drawdown.upkeep import Tidied, tidy_all
from tests.support.ageing import grow_old
from tests.support.workspace import Workspace

MONTH = timedelta(days=31)


def tidied(workspace: Workspace, name: str, *, dry: bool = False) -> Tidied:
    """Of one pipeline; raises its error."""
    project = workspace.project
    with workspace.metastore() as metastore:
        pipelines = [load_pipeline(project, name)]
        [found] = tidy_all(project, pipelines, metastore, {"by": "ada"}, new_run_id, dry=dry)
    if found.error is not None:
        raise found.error
    return found


def tidied_after(workspace: Workspace, name: str, age: timedelta = MONTH) -> Tidied:
    """What everything is older by then is no reason to keep it."""
    grow_old(workspace, age)
    return tidied(workspace, name)
