"""`drawdown upkeep` for a sandbox, in this process; a year goes by before it where a test says so."""

from __future__ import annotations

from datetime import timedelta

from drawdown.application import new_run_id
from drawdown.spec import load_pipeline
from drawdown.upkeep import Tidied, tidy_all
from drawdown.workspace import Workspace
from tests.support.ageing import grow_old
from tests.support.sandbox import Sandbox

MONTH = timedelta(days=31)


def tidied(sandbox: Sandbox, name: str, *, dry: bool = False) -> Tidied:
    """Of one pipeline; raises its error."""
    project = sandbox.project
    with sandbox.metastore() as metastore:
        pipelines = [load_pipeline(project, name)]
        [found] = tidy_all(Workspace(project, metastore), pipelines, {"by": "ada"}, new_run_id, dry=dry)
    if found.error is not None:
        raise found.error
    return found


def tidied_after(sandbox: Sandbox, name: str, age: timedelta = MONTH) -> Tidied:
    """What everything is older by then is no reason to keep it."""
    grow_old(sandbox, age)
    return tidied(sandbox, name)
