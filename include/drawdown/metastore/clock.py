"""The store's own clock as an SQL expression, so that hosts that share a metastore need no common time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement

from drawdown.metastore.columns import UtcTime


class store_now(FunctionElement[datetime]):
    """The present time by the store's clock, of type UtcTime."""

    type = UtcTime()
    inherit_cache = True


@compiles(store_now, "sqlite")
def _sqlite(element: store_now, compiler: Any, **kw: Any) -> str:
    # SQLite keeps whole milliseconds; the rounding undoes the day fraction's float error (47 us).
    return "(CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000)"


@compiles(store_now, "postgresql")
def _postgresql(element: store_now, compiler: Any, **kw: Any) -> str:
    # clock_timestamp, not now(): a transaction that waited for the lease row must not see the past.
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"


def read_clock(conn: Connection) -> datetime:
    """Return the present time by the store's clock."""
    return conn.execute(select(store_now())).scalar_one()
