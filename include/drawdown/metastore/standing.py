"""Who has run, for those who read specs: the DAG processor and `validate` only read the metastore.

Opening a metastore creates it, and refuses one of another schema. Here neither happens.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from sqlalchemy import inspect

from drawdown.errors import DrawdownError
from drawdown.metastore.connect import connect
from drawdown.metastore.operations.claims import standing
from drawdown.spec.project import Project
from drawdown.spec.project_wide.collisions import Ran, RanBefore

_SQLITE = "sqlite:///"
_LAST = "standing.json"


def read_standing(project: Project) -> RanBefore | None:
    """Return the pipelines that have run; None if that cannot be told.

    While the metastore is away, the last answer on this machine holds: a DAG must not break, and lose its
    running tasks, because a database is restarted.
    """
    try:
        found = _read(project.metastore_url)
    except DrawdownError:
        return _last(project)
    with suppress(OSError):
        _keep(project, found)
    return found


def _read(url: str) -> RanBefore:
    if url.startswith(_SQLITE) and not Path(url.removeprefix(_SQLITE)).exists():
        return {}
    engine = connect(url)
    try:
        with engine.begin() as conn:
            tables = set(inspect(conn).get_table_names())
            return standing(conn, recorded="claims" in tables) if "checkpoints" in tables else {}
    finally:
        engine.dispose()


def _last(project: Project) -> RanBefore | None:
    try:
        kept = json.loads((project.state_dir / _LAST).read_text())
        return {
            name: Ran(datetime.fromisoformat(first), None if claims is None else _times(claims))
            for name, (first, claims) in kept.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _times(claims: dict[str, str]) -> dict[str, datetime]:
    return {line: datetime.fromisoformat(since) for line, since in claims.items()}


def _texts(claims: Mapping[str, datetime] | None) -> dict[str, str] | None:
    return None if claims is None else {line: since.isoformat() for line, since in claims.items()}


def _keep(project: Project, found: RanBefore) -> None:
    kept = {name: [ran.first.isoformat(), _texts(ran.claims)] for name, ran in found.items()}
    file = project.state_dir / _LAST
    text = json.dumps(kept)
    with suppress(OSError):
        if file.read_text() == text:
            return
    aside = file.with_name(f".{_LAST}-{os.getpid()}")
    aside.touch(mode=0o600)
    aside.write_text(text)
    aside.replace(file)
