"""`drawdown state`: what a pipeline keeps between batches: operators, partitions, keys, sizes, rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drawdown.cli.screen import out, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from drawdown.recovery.spark_state import StateReader
    from drawdown.spec import Pipeline, Project

_STORES = ("operator", "name", "store", "partitions", "keys", "bytes", "first_batch", "last_batch")


def state(
    name: Annotated[str, typer.Argument(metavar="PIPELINE", show_default=False)],
    operator: Annotated[
        int | None, typer.Option(min=0, help="Show rows of this operator.", show_default=False)
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="Of this store; left or right: one side of a join.", show_default=False),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Only this key, as JSON: its fields, or some.", show_default=False)
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=0, help="As it was after this batch.", show_default=False)
    ] = None,
    metadata: Annotated[
        bool, typer.Option("--metadata", help="Spark's own page about the operators.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many rows.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Read the state of a pipeline: its stores, or with --operator, --store or --key their rows.

    Reads the checkpoint and writes nothing. What Spark prints goes to .drawdown/logs/spark.log.
    """
    from drawdown.spec import load_pipeline, load_project

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
    """Rows as one JSON document, or as a table with a column for every name that any row has."""
    if as_json:
        print_json(rows)
    elif rows:
        out().print(_table(rows))
    else:
        out().print("no state")


def _read(
    project: Project,
    pipeline: Pipeline,
    batch: int | None,
    look: Callable[[StateReader], Sequence[Mapping[str, Any]]],
) -> Sequence[Mapping[str, Any]]:
    from drawdown.cli.session import own_session
    from drawdown.metastore import Metastore
    from drawdown.recovery.spark_state import StateReader, refuse_without_state
    from drawdown.storage import Storage

    storage = Storage(project.storage_root)
    with Metastore.open(project.metastore_url) as metastore:
        checkpoint = metastore.active_checkpoint(pipeline.name)
    path = checkpoint.path if checkpoint else None
    refuse_without_state(pipeline.name, storage, path, batch)
    assert path is not None
    with own_session(project, pipeline, "state", "reading the state") as session:
        return look(StateReader(session.newSession(), storage, path, batch))


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        numbers = all(isinstance(row.get(column), int | None) for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if numbers else "left")
    for row in rows:
        table.add_row(*(Text(_cell(row.get(column))) for column in columns))
    return table


def _cell(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)
