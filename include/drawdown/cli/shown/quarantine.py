"""Formats a quarantine as tables and lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from drawdown.values.text import counted

if TYPE_CHECKING:
    from rich.text import Text

    from drawdown.cli.shown.listing import Listing
    from drawdown.quarantine.row_states import SetAside

_ALWAYS = ("open",)


def counts_table(counts: Sequence[Mapping[str, Any]]) -> Listing:
    """Return one line per rule, batch and day, with a column for every state that occurs."""
    from drawdown.cli.shown.listing import Heading, count, listing
    from drawdown.quarantine.row_states import STATES

    states = [state for state in STATES if state in _ALWAYS or any(line[state] for line in counts)]
    columns = [
        *(
            Heading("rule", "text"),
            Heading("source", "text"),
            Heading("batch"),
            Heading("day (UTC)"),
        ),
        *(Heading(state, "number") for state in states),
    ]
    rows = [
        [
            *(line["rule"], line["source"], f"{line['generation'] or '?'}/{line['batch_id']}"),
            "" if line["day"] is None else str(line["day"]),
            *(count(line[state], exact=False) for state in states),
        ]
        for line in counts
    ]
    return listing(columns, rows)


def total_line(rows: int, total: Mapping[str, int]) -> str:
    """Return the total, each row counted once."""
    parts = [f"{count:,} {state}" for state, count in total.items() if count]
    return counted(rows, "row") + (f": {', '.join(parts)}" if parts else "")


def row_lines(row: SetAside) -> Text:
    """Return a row's reasons, origin and record; unprintable characters are escaped."""
    from rich.text import Text

    place = (
        f"{row.topic} {row.partition}@{row.offset}"
        if row.topic is not None
        else row.file or "origin not recorded"
    )
    head = f"{row.state}  {', '.join(row.reasons)}"
    found = f"  {row.source}  {place}  batch {row.batch_id}  run {row.run_id}"
    lossy = "" if row.raw is None else f"\n    ({len(row.raw):,} bytes, not UTF-8: see --json)"
    return Text.assemble((head, "bold"), found, "\n    ", _readable(row.payload), lossy)


def _readable(payload: str | None) -> str:
    if payload is None:
        return "no payload: the record had no value"
    return payload if payload.isprintable() else json.dumps(payload, ensure_ascii=False)
