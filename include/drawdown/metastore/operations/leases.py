"""Leases: one writer per side (live or shadow) of a pipeline, decided by an epoch that only grows.

Expiry only decides when another run may take over a lease. Epoch and run, checked inside the writing
transaction, decide whether a holder may write: a metastore that has lost its last transactions gives an epoch
twice. So a clock that jumps can pass a lease on early or late, but never lets two runs write. A provably dead
holder (lease_holders.py) has no lease, whatever its time.
"""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, select, text, update

from drawdown.errors import BusyError, RefusedError
from drawdown.metastore.clock import read_clock
from drawdown.metastore.operations import lease_holders as holding
from drawdown.metastore.records import Lease, Side, lease_name
from drawdown.metastore.tables import leases
from drawdown.values.text import utc


def this_process() -> str:
    """Return the name of this process as a holder: host and pid."""
    return f"{socket.gethostname()} pid {os.getpid()}"


def acquire(
    conn: Connection, pipeline: str, holder: str, run_id: str, ttl: timedelta, side: Side = "live"
) -> Lease | BusyError:
    """Take the lease with the next epoch; if somebody holds it, return the error.

    The caller raises the error after the commit, because a refusal may correct the expiry.
    """
    name = lease_name(pipeline, side)
    conn.execute(
        text(
            "INSERT INTO leases"
            " (pipeline, epoch, holder, run_id, acquired_at, renewed_at, expires_at, released)"
            " VALUES (:pipeline, 0, '', '', 0, 0, 0, true) ON CONFLICT (pipeline) DO NOTHING"
        ),
        {"pipeline": name},
    )
    row = conn.execute(_row(name).with_for_update()).one()
    now = read_clock(conn)
    if in_force(row, now):
        until = row.expires_at
        if now < row.renewed_at:
            # The clock went back to before the last renewal: the holder gets one more term from now, not the
            # hours or years that the old time would leave it.
            until = now + (row.expires_at - row.renewed_at)
            _store(conn, name, renewed_at=now, expires_at=until)
        return _busy(row, until)
    lease = Lease(pipeline, holder, run_id, row.epoch + 1, now, now + ttl, side)
    _store(
        conn,
        name,
        epoch=lease.epoch,
        holder=holder,
        run_id=run_id,
        acquired_at=now,
        renewed_at=now,
        expires_at=lease.expires_at,
        released=False,
        process={"epoch": lease.epoch, "of": holding.this_one()},
    )
    return lease


def check(conn: Connection, lease: Lease, *, lock: bool = True) -> None:
    """Raise RefusedError lease.lost unless it is ours; `lock` locks its row until the transaction ends."""
    row = conn.execute(_row(lease.name).with_for_update() if lock else _row(lease.name)).one_or_none()
    if row is not None and (row.epoch, row.run_id) == (lease.epoch, lease.run_id) and not row.released:
        return
    if row is None or row.released:
        now = "it is not held now"
    else:
        now = f"{row.holder} (run {row.run_id}) holds it since {utc(row.acquired_at)}"
    raise RefusedError(
        "lease.lost",
        f"run {lease.run_id} no longer has the lease of {lease.pipeline}: {now}",
        where=f"pipeline {lease.pipeline}",
        do=f"nothing was written; see `drawdown runs {lease.pipeline}`, then run again",
    )


def renew(conn: Connection, lease: Lease, ttl: timedelta) -> Lease:
    """Give a lease a new term from now; call ``check`` first."""
    now = read_clock(conn)
    _store(conn, lease.name, renewed_at=now, expires_at=now + ttl)
    return replace(lease, expires_at=now + ttl)


def release(conn: Connection, lease: Lease) -> None:
    """Give the lease back; a lost lease is no error."""
    conn.execute(
        update(leases)
        .where(
            leases.c.pipeline == lease.name,
            leases.c.epoch == lease.epoch,
            leases.c.run_id == lease.run_id,
        )
        .values(released=True)
    )


def holder_of(conn: Connection, pipeline: str, side: Side = "live") -> Lease | None:
    """Return the lease in force; None if it was never taken, was released, expired, or its holder is dead."""
    row = conn.execute(_row(lease_name(pipeline, side))).one_or_none()
    if row is None or not in_force(row, read_clock(conn)):
        return None
    return Lease(pipeline, row.holder, row.run_id, row.epoch, row.acquired_at, row.expires_at, side)


def in_force(row: Row[*tuple[Any, ...]], now: datetime) -> bool:
    """Whether this row of `leases` excludes others."""
    if row.released or row.expires_at <= now:
        return False
    # A program without this column leaves the entry of the holder before it.
    noted = row.process if row.process is not None and row.process["epoch"] == row.epoch else {}
    return not holding.is_gone(noted.get("of"))


def _row(name: str) -> Select[*tuple[Any, ...]]:
    return select(leases).where(leases.c.pipeline == name)


def _store(conn: Connection, name: str, **values: object) -> None:
    conn.execute(update(leases).where(leases.c.pipeline == name).values(**values))


def _busy(row: Row[*tuple[Any, ...]], until: datetime) -> BusyError:
    return BusyError(
        "lease.held",
        f"{_about(row)} is being run by {row.holder} (run {row.run_id}) since {utc(row.acquired_at)}, "
        f"until {utc(until)} unless it goes on",
        where=f"pipeline {_about(row)}",
        do=f"wait until {utc(until)}; or see `drawdown runs {_about(row)}`",
    )


def _about(row: Row[*tuple[Any, ...]]) -> str:
    """Return the pipeline of a lease; the rest of the lease's name says which of its leases it is."""
    return str(row.pipeline).split("#")[0]
