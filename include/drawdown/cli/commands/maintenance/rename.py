"""`drawdown rename`: what is kept under a pipeline's old name is kept under its new one. Needs no Spark."""

from __future__ import annotations

import getpass
from dataclasses import replace
from typing import Annotated

import typer

from drawdown.cli.arguments import By, Json, MaybeWhy
from drawdown.cli.screen import out, print_json
from drawdown.credentials import collect
from drawdown.errors import SpecError
from drawdown.spec import load_pipeline, load_project


def rename(
    old: Annotated[str, typer.Argument(metavar="OLD", show_default=False)],
    new: Annotated[str, typer.Argument(metavar="NEW", show_default=False)],
    why: MaybeWhy = "",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Give a pipeline's checkpoint, history, leases, held slices, rebuilds and quarantine to its new name.

    First rename its folder, and write `first_name: OLD` into its pipeline.yaml: the sink still knows its
    batches by that name. If it is interrupted, the same command completes it.
    """
    from drawdown.application import new_run_id
    from drawdown.metastore import this_process
    from drawdown.observe.record import recording
    from drawdown.recovery.rename import KIND, refuse_folder
    from drawdown.recovery.rename import rename as give_name
    from drawdown.recovery.request import RecoveryRequest
    from drawdown.workspace import Workspace

    project = load_project()
    if old == new:
        raise SpecError(
            "cli.usage",
            f"{old} is both the old and the new name",
            where="drawdown rename",
            do="name the pipeline's name until now, then the name of its folder",
        )
    refuse_folder(project, old, new)
    pipeline = load_pipeline(project, new)
    request = RecoveryRequest(KIND, new_run_id(), this_process(), by or getpass.getuser(), why)
    with Workspace.open(project) as workspace, recording(workspace, new):
        give_name(replace(workspace, project=collect(project, [pipeline])), pipeline, old, request)
    if as_json:
        return print_json({"run_id": request.run_id, "from": old, "to": new})
    return out().print(f"[green]✓[/] {old} is {new} now", highlight=False)
