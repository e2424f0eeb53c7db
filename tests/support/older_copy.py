"""A backup of a sandbox's metastore, as a person makes one and puts it back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from tests.support.sandbox import Sandbox


def copy_of(sandbox: Sandbox, name: str = "copy.db") -> Callable[[], None]:
    """Back up the metastore by SQLite's own means; gives what puts it back."""
    live, kept = sandbox.root / "metastore.db", sandbox.root / name
    _copy(live, kept)
    return lambda: _copy(kept, live)


def _copy(old: Path, new: Path) -> None:
    with sqlite3.connect(old) as source, sqlite3.connect(new) as target:
        source.backup(target)
