"""`drawdown release` and `drawdown discard`: a person decides about a slice that failed its audit."""

from __future__ import annotations

import getpass
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.arguments import By, Json, Name, Why
from drawdown.cli.screen import out, print_json
from drawdown.credentials import collect
from drawdown.errors import RefusedError
from drawdown.spec import load_pipeline, load_project
from drawdown.values.text import counted

if TYPE_CHECKING:
    from drawdown.held.decide import Choice, Decision
    from drawdown.metastore.records import HeldSlice

Batch = Annotated[
    int | None,
    typer.Option(min=0, help="Only the slice with this batch; default: all.", show_default=False),
]


def release(name: Name, why: Why, by: By = None, batch: Batch = None, as_json: Json = False) -> None:
    """Publish a held slice unchanged, and the batches that wait behind it. Needs no Spark."""
    _decide(name, _decision("release", by, why), batch, as_json)


def discard(name: Name, why: Why, by: By = None, batch: Batch = None, as_json: Json = False) -> None:
    """Drop a held slice: its rows are deleted and not read again. Publishes the batches behind it."""
    _decide(name, _decision("discard", by, why), batch, as_json)


def _decision(choice: Choice, by: str | None, why: str) -> Decision:
    from drawdown.application import new_run_id
    from drawdown.held.decide import Decision
    from drawdown.metastore import this_process

    return Decision(choice, new_run_id(), this_process(), by or getpass.getuser(), why)


def _decide(name: str, decision: Decision, batch: int | None, as_json: bool) -> None:
    from drawdown.held.decide import decide
    from drawdown.observe.lineage.run_events import told_at_its_end
    from drawdown.observe.record import recording
    from drawdown.plan.version_in_use import in_use
    from drawdown.workspace import Workspace

    project = load_project()
    pipeline = load_pipeline(project, name)
    project = collect(project, [pipeline])
    with Workspace.open(project) as workspace:
        pipeline = in_use(workspace, pipeline)
        if batch is not None:
            key = _key(workspace.metastore.held_slices(name), name, batch)
            decision = replace(decision, key=key)
        with told_at_its_end(workspace, pipeline, decision.run_id), recording(workspace, name):
            decided = decide(workspace, pipeline, decision)
    if as_json:
        return print_json(
            {
                "run_id": decision.run_id,
                "batches": decided.batch_ids,
                "rows": decided.rows,
                "published_rows": decided.published.rows,
            }
        )
    word = "released" if decision.choice == "release" else "discarded"
    out().print(
        f"[green]✓[/] {word} {counted(decided.rows, 'row')} of {counted(len(decided.batch_ids), 'batch')};"
        f" {counted(decided.published.rows, 'row')} became visible"
    )
    return None


def _key(held: list[HeldSlice], name: str, batch: int) -> str:
    """Return the key of the held slice with this batch. Raises RefusedError ``slice.none-held``."""
    for slice_ in held:
        if batch in slice_.batch_ids:
            return slice_.key
    raise RefusedError(
        "slice.none-held",
        f"batch {batch} of {name} is not in a held slice",
        where=f"pipeline {name}",
        do=f"`drawdown runs {name}` shows what is held",
    )
