"""`drawdown remove`: deletes what a pipeline has left whose folder is gone. Needs no Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from drawdown.cli.arguments import Json, Name
from drawdown.cli.confirm import confirm
from drawdown.cli.screen import out, print_json
from drawdown.spec import load_project
from drawdown.values.text import counted


def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Delete checkpoints, snapshots, quarantine and records of a pipeline whose folder is gone.

    Its table or topic stays. There is no way back. `drawdown upkeep --all` lists such pipelines.
    """
    from drawdown.application import new_run_id
    from drawdown.metastore import this_process
    from drawdown.upkeep.removed_pipelines import refuse, removed_pipelines
    from drawdown.upkeep.removed_pipelines import remove as delete
    from drawdown.workspace import Workspace

    project = load_project()
    with Workspace.open(project) as workspace:
        refuse(workspace, name)
        if not yes:
            [left] = [each for each in removed_pipelines(workspace) if each.name == name]
            question = f"{left}\nDelete all of this permanently?"
            confirm(question, "remove.unasked", f"drawdown remove {name} --yes")
        done = delete(workspace, name, new_run_id(), this_process())
    if as_json:
        return print_json({"pipeline": name, "files": done.files, "bytes": done.bytes})
    return out().print(
        f"[green]✓[/] {counted(done.files, 'file')}, {counted(done.bytes, 'byte')} and the records of {name}"
        " are gone",
        highlight=False,
    )
