"""A quarantine as tables and lines for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from drawdown.quarantine.rows import SetAside

_ALWAYS = ("open",)


def counts_table(counts: Sequence[Mapping[str, Any]]) -> Table:
    """One line per rule, batch and day; a column for every state that any row is in."""
    from rich import box
    from rich.table import Table

    from drawdown.quarantine.rows import STATES

    states = [state for state in STATES if state in _ALWAYS or any(line[state] for line in counts)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("rule", "source", "batch", "day (UTC)"):
        table.add_column(column)
    for state in states:
        table.add_column(state, justify="right")
    for line in counts:
        day = "" if line["day"] is None else str(line["day"])
        batch = f"{line['generation'] or '?'}/{line['batch_id']}"
        table.add_row(
            _plain(line["rule"]), _plain(line["source"]), batch, day, *(f"{line[s]:,}" for s in states)
        )
    return table


def total_line(rows: int, total: Mapping[str, int]) -> str:
    """All rows, each once."""
    parts = [f"{count:,} {state}" for state, count in total.items() if count]
    return f"{rows:,} row(s)" + (f": {', '.join(parts)}" if parts else "")


def row_lines(row: SetAside) -> Text:
    """A row's reasons, its place and its record; what is not printable in the record is escaped."""
    from rich.text import Text

    place = (
        f"{row.topic} {row.partition}@{row.offset}" if row.topic is not None else row.file or "no place kept"
    )
    head = f"{row.state}  {', '.join(row.reasons)}"
    found = f"  {row.source}  {place}  batch {row.batch_id}  run {row.run_id}"
    lossy = "" if row.raw is None else f"\n    ({len(row.raw):,} bytes that are no UTF-8: --json has them)"
    return Text.assemble((head, "bold"), found, "\n    ", _readable(row.payload), lossy)


def _readable(payload: str | None) -> str:
    if payload is None:
        return "no payload: the record had no value"
    return payload if payload.isprintable() else json.dumps(payload, ensure_ascii=False)


def _plain(text: str) -> Text:
    from rich.text import Text

    return Text(text)
