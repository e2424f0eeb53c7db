"""The register of changes to the tables of sinks: open ones, and how the others ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace

from sqlalchemy import Connection, insert, select, update

from drawdown.metastore.clock import read_clock
from drawdown.metastore.records import Change, ChangeState, Lease
from drawdown.metastore.tables import changes


def begin(conn: Connection, lease: Lease, change: Change) -> Change:
    """Record a change under this lease as open; return it with the store's time."""
    begun = replace(change, lease=lease.name, epoch=lease.epoch, state="open", begun_at=read_clock(conn))
    values = asdict(begun)
    values["table_name"] = values.pop("table")
    conn.execute(insert(changes).values(values))
    return begun


def end(conn: Connection, change_ids: Iterable[str], state: ChangeState) -> None:
    """Close open changes; a closed one stays as it is.

    Needs no lease: the sink shows how they ended.
    """
    ids = list(change_ids)
    if ids:
        still = changes.c.change_id.in_(ids), changes.c.state == "open"
        conn.execute(update(changes).where(*still).values(state=state, ended_at=read_clock(conn)))


def read_open(conn: Connection, pipeline: str) -> list[Change]:
    """Return the open changes of a pipeline's tables, oldest first."""
    query = select(changes).where(changes.c.pipeline == pipeline, changes.c.state == "open")
    found = [_change(dict(row._mapping)) for row in conn.execute(query)]
    # Sorted here: with an ORDER BY, SQLite would not use the index.
    return sorted(found, key=lambda change: (change.begun_at, change.change_id))


def read_states(conn: Connection, change_ids: Iterable[str]) -> dict[str, ChangeState]:
    """Return the states of these changes; changes that are not in the register are left out."""
    query = select(changes.c.change_id, changes.c.state).where(changes.c.change_id.in_(list(change_ids)))
    return {row.change_id: row.state for row in conn.execute(query)}


def _change(values: dict[str, object]) -> Change:
    values["table"] = values.pop("table_name")
    return Change(**values)  # type: ignore[arg-type]
