"""What `drawdown checkpoint` shows of a checkpoint, as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text


def overview_tables(found: Mapping[str, Any]) -> Iterator[Table]:
    """One table of facts, then the sources, folders, state stores and snapshots there are."""
    facts = Table(box=None, show_header=False, pad_edge=False)
    for key in ("pipeline", "generation", "path", "query_id", "planned", "committed", "watermark"):
        facts.add_row(key.replace("_", " "), _text(found[key]))
    for key in ("metastore", "sink", "lease"):
        facts.add_row(key, _text(found[key]))
    yield facts
    for key in ("sources", "folders", "stores", "snapshots"):
        rows = _rows(key, found[key])
        if rows:
            yield _table(key, rows)


def fault_lines(faults: Sequence[Mapping[str, Any]]) -> Iterator[Text]:
    """File by file what is wrong, what the next run needs first; a path stays whole, to be copied."""
    for fault in faults:
        needed = "the next run needs it" if fault["needed"] else "the next run does not need it"
        yield Text.assemble(("✗ ", "red"), f"{fault['file']}\n  {fault['what']}; {needed}")


def _rows(key: str, value: Any) -> list[dict[str, Any]]:
    if isinstance(value, Mapping) and set(value) == {"error"}:
        return [dict(value)]
    if key == "sources":
        return [{"source": name, "offset": offset} for name, offset in value.items()]
    if key == "folders":
        return [{"folder": name, **sizes} for name, sizes in value.items()]
    return [dict(row) for row in value]


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title or None, title_justify="left")
    for column in rows[0]:
        numbers = all(isinstance(row[column], int | None) for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_text(value)) for value in row.values()))
    return table


def _text(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)
