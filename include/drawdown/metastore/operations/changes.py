"""The register of changes to the tables of sinks: what is under way, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace

from sqlalchemy import Connection, insert, select, update

from drawdown.metastore.clock import read_clock
from drawdown.metastore.records import Change, ChangeState, Lease
from drawdown.metastore.tables import changes


def begin(conn: Connection, lease: Lease, change: Change) -> Change:
    """Notes a change as open, made under this lease; returns it with the store's time."""
    begun = replace(change, lease=lease.name, epoch=lease.epoch, state="open", begun_at=read_clock(conn))
    values = asdict(begun)
    values["table_name"] = values.pop("table")
    conn.execute(insert(changes).values(values))
    return begun


def end(conn: Connection, change_ids: Iterable[str], state: ChangeState) -> None:
    """Closes open changes; one that is closed already stays as it is."""
    ids = list(change_ids)
    if ids:
        still = changes.c.change_id.in_(ids), changes.c.state == "open"
        conn.execute(update(changes).where(*still).values(state=state, ended_at=read_clock(conn)))


def read_open(conn: Connection, pipeline: str) -> list[Change]:
    """The open changes of a pipeline, oldest first."""
    query = select(changes).where(changes.c.pipeline == pipeline, changes.c.state == "open")
    found = [_change(dict(row._mapping)) for row in conn.execute(query)]
    # Ordered here: an ORDER BY would lure SQLite away from the index.
    return sorted(found, key=lambda change: (change.begun_at, change.change_id))


def read_states(conn: Connection, change_ids: Iterable[str]) -> dict[str, ChangeState]:
    """What became of these changes; those that are not in the register are left out."""
    query = select(changes.c.change_id, changes.c.state).where(changes.c.change_id.in_(list(change_ids)))
    return {row.change_id: row.state for row in conn.execute(query)}


def _change(values: dict[str, object]) -> Change:
    values["table"] = values.pop("table_name")
    return Change(**values)  # type: ignore[arg-type]
