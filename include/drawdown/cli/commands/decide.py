"""`drawdown release` and `drawdown discard`: a person decides about a slice that failed its audit."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.screen import out, print_json
from drawdown.errors import RefusedError

if TYPE_CHECKING:
    from drawdown.metastore.records import HeldSlice

Name = Annotated[str, typer.Argument(help="The pipeline.", show_default=False)]
Why = Annotated[str, typer.Option("--why", help="Kept in the run record.", show_default=False)]
By = Annotated[str | None, typer.Option("--by", help="Who decides; by default the user.", show_default=False)]
Batch = Annotated[
    int | None,
    typer.Option(min=0, help="Only the slice with this batch; by default all.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


def release(name: Name, why: Why, by: By = None, batch: Batch = None, as_json: Json = False) -> None:
    """Publish a held slice as it is, and what waits behind it. Needs no Spark."""
    _decide("release", name, why, by, batch, as_json)


def discard(name: Name, why: Why, by: By = None, batch: Batch = None, as_json: Json = False) -> None:
    """Drop a held slice: its rows are deleted and not read again. Publishes what waits behind it."""
    _decide("discard", name, why, by, batch, as_json)


def _decide(choice: str, name: str, why: str, by: str | None, batch: int | None, as_json: bool) -> None:
    from drawdown.application import new_run_id
    from drawdown.credentials import collect
    from drawdown.held.decide import Decision, decide
    from drawdown.metastore import this_process
    from drawdown.plan.version_in_use import in_use
    from drawdown.spec import load_pipeline, load_project
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
        f"[green]✓[/] {word} {decided.rows:,} rows of {len(decided.batch_ids)} batches; "
        f"{decided.published.rows:,} rows are visible now that were not"
    )
    return None


def _key(held: list[HeldSlice], name: str, batch: int) -> str:
    """Of the held slice that a batch is in. Raises RefusedError ``slice.none-held``."""
    for slice_ in held:
        if batch in slice_.batch_ids:
            return slice_.key
    raise RefusedError(
        "slice.none-held",
        f"batch {batch} of {name} is in no held slice",
        where=f"pipeline {name}",
        do=f"`drawdown runs {name}` shows what is held",
    )
