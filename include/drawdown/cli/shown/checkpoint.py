"""Formats a checkpoint as tables for `drawdown checkpoint`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from drawdown.cli.shown.listing import Listing, facts, records
from drawdown.values.text import utc

_FACTS = (
    "pipeline", "generation", "path", "query_id", "planned", "committed", "watermark", "metastore", "sink",
    "lease",
)  # fmt: skip


def overview_tables(found: Mapping[str, Any]) -> Iterator[Table | Listing]:
    """Yield facts about the checkpoint, then its sources, folders, state stores and snapshots."""
    yield facts({**{name: found[name] for name in _FACTS}, "watermark": _time(found["watermark"])})
    for name in ("sources", "folders", "stores", "snapshots"):
        rows = _rows(name, found[name])
        if rows:
            yield records(rows, title=name)


def fault_lines(faults: Sequence[Mapping[str, Any]]) -> Iterator[Text]:
    """Yield faults file by file, those that the next run needs first; paths are not cut, so that they can be
    copied."""
    for fault in faults:
        needed = "the next run needs it" if fault["needed"] else "the next run does not need it"
        yield Text.assemble(("✗ ", "red"), f"{fault['file']}\n  {fault['what']}; {needed}")


def _time(watermark: Any) -> Any:
    """As other listings show it; the reason where it cannot be read."""
    return utc(watermark) if isinstance(watermark, datetime) else watermark


def _rows(key: str, value: Any) -> list[dict[str, Any]]:
    if isinstance(value, Mapping) and set(value) == {"error"}:
        return [dict(value)]
    if key == "sources":
        return [{"source": name, "offset": offset} for name, offset in value.items()]
    if key == "folders":
        return [{"folder": name, **sizes} for name, sizes in value.items()]
    return [dict(row) for row in value]
