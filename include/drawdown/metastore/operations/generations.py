"""All rows of one checkpoint generation: export them as JSON-ready values, restore them, cut them off."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Column, Connection, Table, delete, insert, select

from drawdown.metastore.columns import UtcTime
from drawdown.metastore.operations import decisions
from drawdown.metastore.tables import batches, checkpoints, maxima, quarantine_decisions, staged_files
from drawdown.values.interval import EPOCH

_TABLES = (checkpoints, batches, staged_files, maxima)
_BY_BATCH = (staged_files, batches)
# What readers see and what a person discarded are facts of the sink, which an older record cannot undo.
_FINAL = ("published", "discarded")
# Not exported: which generation is in use does not belong to a single generation.
_ITS_PLACE = (checkpoints.c.state, checkpoints.c.rebuild)


def export(conn: Connection, pipeline: str, generation: int) -> dict[str, list[dict[str, Any]]]:
    """Return everything of a generation (batches, files, maxima) as JSON-ready rows by table.

    Times are microseconds since 1970 UTC.
    """
    return {
        table.name: [
            {column.name: _plain(column, row[column.name]) for column in table.columns}
            for row in conn.execute(select(table).where(*_of(table, pipeline, generation))).mappings()
        ]
        for table in (*_TABLES, quarantine_decisions)
    }


def replace(
    conn: Connection, pipeline: str, generation: int, rows: dict[str, list[dict[str, Any]]], last_batch: int
) -> None:
    """Replace a generation's rows by exported ones.

    Batches up to `last_batch` that were published or discarded stay so.
    """
    kept = select(batches.c.batch_id, batches.c.status, batches.c.verdict).where(
        *_of(batches, pipeline, generation), batches.c.batch_id <= last_batch, batches.c.status.in_(_FINAL)
    )
    final = {row.batch_id: row for row in conn.execute(kept)}
    now = conn.execute(select(*_ITS_PLACE).where(*_of(checkpoints, pipeline, generation))).mappings().first()
    if now is not None:
        for row in rows[checkpoints.name]:
            row.update(now)
    for row in rows[batches.name]:
        if row["batch_id"] in final:
            row["status"] = final[row["batch_id"]].status
            row["verdict"] = final[row["batch_id"]].verdict
    for table in _TABLES:
        conn.execute(delete(table).where(*_of(table, pipeline, generation)))
        values = [
            {c.name: _typed(c, row[c.name]) for c in table.columns if c.name in row}
            for row in rows[table.name]
        ]
        if values:
            conn.execute(insert(table), values)
    decisions.forget_replays(conn, pipeline, generation, last_batch)
    # Later decisions stay. Decisions that were lost with a metastore are restored, or their rows would be
    # replayed a second time. An export of an older version has none.
    known = set(conn.execute(select(quarantine_decisions.c.decision_id)).scalars())
    for row in rows.get(quarantine_decisions.name, ()):
        if row["decision_id"] not in known and row["batch_id"] <= last_batch:
            typed = {c.name: _typed(c, row[c.name]) for c in quarantine_decisions.columns}
            conn.execute(insert(quarantine_decisions).values(typed))


def cut(conn: Connection, pipeline: str, generation: int, last_batch: int) -> None:
    """Delete every batch after `last_batch`: a rewound checkpoint plans their ids again.

    The records of their files go too, and the rows they took from the quarantine are open again.
    """
    for table in _BY_BATCH:
        conn.execute(delete(table).where(*_of(table, pipeline, generation), table.c.batch_id > last_batch))
    decisions.forget_replays(conn, pipeline, generation, last_batch)


def _of(table: Table, pipeline: str, generation: int) -> list[Any]:
    return [table.c.pipeline == pipeline, table.c.generation == generation]


def _plain(column: Column[Any], value: Any) -> Any:
    if isinstance(column.type, UtcTime) and isinstance(value, datetime):
        return (value - EPOCH) // timedelta(microseconds=1)
    return value


def _typed(column: Column[Any], value: Any) -> Any:
    if isinstance(column.type, UtcTime) and value is not None:
        return EPOCH + timedelta(microseconds=value)
    return value
