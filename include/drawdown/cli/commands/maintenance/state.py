"""`drawdown state`: shows what a pipeline keeps between batches: operators, partitions, keys, sizes, rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drawdown.cli.arguments import Json, Name
from drawdown.cli.screen import out, print_json
from drawdown.cli.session import own_session
from drawdown.spec import load_pipeline, load_project

if TYPE_CHECKING:
    from drawdown.recovery.spark_state_reader import StateReader
    from drawdown.spec import Pipeline, Project

_STORES = ("operator", "name", "store", "partitions", "keys", "bytes", "first_batch", "last_batch")


def state(
    name: Name,
    operator: Annotated[
        int | None, typer.Option(min=0, help="Show rows of this operator.", show_default=False)
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="Only this store; left or right for one side of a join.", show_default=False),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help="Only this key, as JSON: all of its fields, or some.", show_default=False),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=0, help="State after this batch.", show_default=False)
    ] = None,
    metadata: Annotated[
        bool, typer.Option("--metadata", help="Show Spark's state metadata of the operators.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of rows.")] = 20,
    as_json: Json = False,
) -> None:
    """Show a pipeline's state stores, or with --operator, --store or --key their rows.

    Reads the checkpoint and writes nothing. Spark's output goes to .drawdown/logs/spark.log.
    """
    project = load_project()
    pipeline = load_pipeline(project, name)

    def look(reader: StateReader) -> Sequence[Mapping[str, Any]]:
        if metadata:
            return reader.metadata()
        if operator is not None or store is not None or key is not None:
            return reader.read(operator or 0, store, key, limit)
        return [{name: getattr(each, name) for name in _STORES} for each in reader.stores()]

    show(_read(project, pipeline, batch, look), as_json=as_json)


def show(rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print rows as one JSON document, or as a table with all column names that occur."""
    if as_json:
        print_json(rows)
    elif rows:
        from drawdown.cli.shown.listing import records

        out().print(records(rows))
    else:
        out().print("no state")


def _read(
    project: Project,
    pipeline: Pipeline,
    batch: int | None,
    look: Callable[[StateReader], Sequence[Mapping[str, Any]]],
) -> Sequence[Mapping[str, Any]]:
    from drawdown.recovery.spark_state_reader import StateReader, refuse_without_state
    from drawdown.workspace import Generation, Workspace

    with Workspace.open(project) as workspace:
        generation = Generation.of(workspace, pipeline)
        refuse_without_state(generation, batch)
    with own_session(project, pipeline, "state", "reading the state") as session:
        return look(StateReader(session.newSession(), generation.storage, generation.path, batch))
