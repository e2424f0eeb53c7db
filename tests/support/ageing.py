"""Time goes by for a project: what it has kept is as if it had been written so long ago."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from drawdown.metastore import Metastore
from drawdown.metastore.columns import UtcTime
from drawdown.metastore.tables import metadata
from drawdown.recovery.request import TIME, time_of
from tests.support.sandbox import Sandbox

_OURS = ("tables", "quarantine", "_drawdown")


def grow_old(sandbox: Sandbox, age: timedelta) -> None:
    """The metastore, and every file but those of sources: whoever reads those has noted their times."""
    with sandbox.metastore() as metastore:
        records_grow_old(metastore, age)
    files_grow_old((sandbox.storage / folder for folder in _OURS), age)
    for snapshot in (sandbox.storage / "_drawdown").glob("*/snapshots/*Z"):
        # Its name is the time at which it was taken.
        snapshot.rename(snapshot.with_name(f"{time_of(snapshot.name) - age:{TIME}}"))


def files_grow_old(folders: Iterable[Path], age: timedelta) -> None:
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                at = path.stat().st_mtime - age.total_seconds()
                os.utime(path, (at, at))


def records_grow_old(metastore: Metastore, age: timedelta) -> None:
    """Every time that the store itself has set; event times stay."""
    with metastore._writer.begin() as conn:
        for table in metadata.tables.values():
            times = [c for c in table.c if isinstance(c.type, UtcTime) and c.name.endswith("_at")]
            if times:
                microseconds = age // timedelta(microseconds=1)
                conn.exec_driver_sql(
                    f"UPDATE {table.name} SET "
                    + ", ".join(f"{c.name} = {c.name} - {microseconds}" for c in times)
                )
