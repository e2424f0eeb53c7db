"""A lease that has run out although its holder lives."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

from tests.support.sandbox import Sandbox


def move_lease(sandbox: Sandbox, by: timedelta) -> None:
    """What a jump of the store's clock by the opposite is to a lease; SQLite's clock is the machine's own.

    Of the holder nothing is known any more, as if it were on another machine.
    """
    moved = ", ".join(f"{c} = {c} + :by" for c in ("acquired_at", "renewed_at", "expires_at"))
    with sqlite3.connect(sandbox.root / "metastore.db") as store:
        store.execute(f"UPDATE leases SET {moved}, process = NULL", {"by": by // timedelta(microseconds=1)})
