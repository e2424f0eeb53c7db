"""`drawdown release` and `drawdown discard`: a person decides about a slice that failed its audit."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.arguments import By, Json, Name, Why
from drawdown.cli.screen import out, print_json
from drawdown.credentials import collect
from drawdown.errors import RefusedError
from drawdown.spec import load_pipeline, load_project
from drawdown.values.text import counted

if TYPE_CHECKING:
    from drawdown.metastore.records import HeldSlice

Batch = Annotated[
    int | None,
    typer.Option(min=0, help="Only the slice with this batch; default: all.", show_default=False),
]


def release(name: Name, why: Why, by: By = None, batch: Batch = None, as_json: Json = False) -> None:
    """Publish a held slice unchanged, and the batches that wait behind it. Needs no Spark."""
    _decide("release", name, why, by, batch, as_json)


def discard(name: Name, why: Why, by: By = None, batch: Batch = None, as_json: Json = False) -> None:
    """Drop a held slice: its rows are deleted and not read again. Publishes the batches behind it."""
    _decide("discard", name, why, by, batch, as_json)


def _decide(choice: str, name: str, why: str, by: str | None, batch: int | None, as_json: bool) -> None:
    from drawdown.application import new_run_id
    from drawdown.held.decide import Decision, decide
    from drawdown.metastore import this_process
    from drawdown.plan.version_in_use import in_use
    from drawdown.workspace import Workspace

    project = load_project()
    pipeline = load_pipeline(project, name)
    project = collect(project, [pipeline])
    with Workspace.open(project) as workspace:
        pipeline = in_use(workspace, pipeline)
        decision = Decision(
            "release" if choice == "release" else "discard",
            new_run_id(),
            this_process(),
            by or getpass.getuser(),
            why,
            None if batch is None else _key(workspace.metastore.held_slices(name), name, batch),
        )
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
    word = "released" if choice == "release" else "discarded"
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
