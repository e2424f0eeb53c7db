"""`drawdown rebuild`: a new generation beside the live one, compared, then swapped in or discarded."""

from __future__ import annotations

import getpass
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from drawdown.cli.application import in_application
from drawdown.cli.arguments import By, Json, Name, Why
from drawdown.cli.chosen import require_known
from drawdown.cli.command import Commands
from drawdown.cli.screen import out, print_json
from drawdown.credentials import collect
from drawdown.errors import RefusedError
from drawdown.rebuild.comparison_text import comparison_lines, sample_lines
from drawdown.spec import load_project

if TYPE_CHECKING:
    from drawdown.metastore.records import Checkpoint

app = Commands(
    help="Recompute a pipeline's output after a change that its state cannot take, and swap it in.",
    no_args_is_help=True,
)
About = Annotated[
    str | None,
    typer.Option(
        "--rebuild", help="Id of the rebuild, from `show`; default: the current one.", show_default=False
    ),
]


@app.command()
def start(name: Name, as_json: Json = False) -> None:
    """Drain a shadow of the pipeline from the beginning and compare it; run it again to continue.

    Uses the version in the pipeline's folder `next/` if there is one, else the folder's own.
    """
    from drawdown.application import exit_code
    from drawdown.cli.shown.runs import run_values
    from drawdown.plan.version_in_use import wanted
    from drawdown.workspace import Workspace

    project = load_project()
    pipeline = wanted(project, name)
    with Workspace.open(project) as workspace:
        reports, signal = in_application(
            replace(workspace, project=collect(project, [pipeline])),
            pipeline,
            lambda application: [application.rebuild(pipeline)],
            command="drawdown rebuild start",
        )
        shadow = workspace.metastore.of_rebuilds.active_checkpoint(name)
    compared = _values(shadow) if shadow is not None else None
    if as_json:
        run = next((report.run for report in reports if report.run), None)
        error = next((report.error for report in reports if report.error), None)
        print_json({"run": run and run_values(run), "rebuild": compared, "error": error and error.as_dict()})
    elif compared is not None:
        _print(name, compared)
    raise typer.Exit(exit_code(reports) if signal is None else 128 + signal)


@app.command()
def show(name: Name, as_json: Json = False) -> None:
    """Show a rebuild's state and how its output differs from the live one."""
    from drawdown.workspace import Workspace

    with Workspace.open(load_project()) as workspace:
        require_known(workspace, name)
        found = [
            each for each in workspace.metastore.generations(name) if each.rebuild or each.state != "live"
        ]
    if not found:
        raise RefusedError(
            "rebuild.none",
            f"{name} was never rebuilt",
            where=f"pipeline {name}",
            do=f"`drawdown rebuild start {name}` starts one",
        )
    values = _values(found[-1])
    return print_json(values) if as_json else _print(name, values)


@app.command()
def approve(name: Name, why: Why, by: By = None, rebuild: About = None, as_json: Json = False) -> None:
    """Swap the rebuild in with one commit: readers then see its rows, and drains continue from it."""
    _end("approve", name, (why, by, rebuild), as_json)


@app.command()
def discard(name: Name, why: Why, by: By = None, rebuild: About = None, as_json: Json = False) -> None:
    """Give up a rebuild: its checkpoint and its rows are deleted."""
    _end("discard", name, (why, by, rebuild), as_json)


@app.command()
def rollback(name: Name, why: Why, by: By = None, as_json: Json = False) -> None:
    """Undo a swap: restores the table and the live generation from before it."""
    _end("rollback", name, (why, by, None), as_json)


def _end(
    choice: Literal["approve", "discard", "rollback"],
    name: str,
    said: tuple[str, str | None, str | None],
    as_json: bool,
) -> None:
    """`said`: why, by whom, and about which rebuild."""
    from drawdown.application import new_run_id
    from drawdown.metastore import this_process
    from drawdown.observe.lineage.run_events import told_at_its_end
    from drawdown.observe.record import recording
    from drawdown.plan.version_in_use import wanted
    from drawdown.rebuild.publish import RebuildDecision, end_rebuild
    from drawdown.workspace import Workspace

    project = load_project()
    why, by, about = said
    asked = RebuildDecision(choice, new_run_id(), this_process(), by or getpass.getuser(), why, about=about)
    with Workspace.open(project) as workspace:
        pipeline = wanted(project, name)
        with told_at_its_end(workspace, pipeline, asked.run_id), recording(workspace, name):
            run = end_rebuild(workspace, pipeline, asked)
    if as_json:
        return print_json({"run_id": run.run_id, "generation": run.generation, "said": run.stop_reason})
    out().print(f"[green]✓[/] {run.stop_reason}", highlight=False)
    return None


def _values(checkpoint: Checkpoint) -> dict[str, Any]:
    from drawdown.rebuild.refusals import rebuild_id

    return {
        "rebuild": rebuild_id(checkpoint),
        "generation": checkpoint.generation,
        "state": checkpoint.state,
        "comparison": checkpoint.rebuild.get("comparison"),
        "swap": checkpoint.rebuild.get("swap"),
        "before": checkpoint.rebuild.get("before"),
    }


def _print(name: str, values: dict[str, Any]) -> None:
    what = f"rebuild {values['rebuild']}, generation {values['generation']}: {values['state']}"
    out().print(f"{name}, {what}", markup=False, highlight=False)
    if values["comparison"] is None:
        out().print("not compared yet", markup=False)
        return
    for line in (*comparison_lines(values["comparison"]), *sample_lines(values["comparison"])):
        out().print(line, markup=False, soft_wrap=True, highlight=False)
