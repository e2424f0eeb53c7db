"""`drawdown release` and `drawdown discard`: a person decides about a slice that failed its audit."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from drawdown.cli.screen import out, print_json

Name = Annotated[str, typer.Argument(help="The pipeline.", show_default=False)]
Why = Annotated[str, typer.Option("--why", help="Kept in the run record.", show_default=False)]
By = Annotated[str | None, typer.Option("--by", help="Who decides; by default the user.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


def release(name: Name, why: Why, by: By = None, as_json: Json = False) -> None:
    """Publish a held slice as it is, and what waits behind it. Needs no Spark."""
    _decide("release", name, why, by, as_json)


def discard(name: Name, why: Why, by: By = None, as_json: Json = False) -> None:
    """Drop a held slice: its rows are deleted and not read again. Publishes what waits behind it."""
    _decide("discard", name, why, by, as_json)


def _decide(choice: str, name: str, why: str, by: str | None, as_json: bool) -> None:
    from drawdown.application import new_run_id
    from drawdown.credentials import collect
    from drawdown.metastore import Metastore, this_process
    from drawdown.publishing.held import Decision, decide
    from drawdown.spec import load_pipeline, load_project

    project = load_project()
    pipeline = load_pipeline(project, name)
    project = collect(project, [pipeline])
    decision = Decision(
        "release" if choice == "release" else "discard",
        new_run_id(),
        this_process(),
        by or getpass.getuser(),
        why,
    )
    with Metastore.open(project.metastore_url) as metastore:
        decided = decide(metastore, project, pipeline, decision)
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
