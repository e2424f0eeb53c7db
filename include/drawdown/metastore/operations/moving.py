"""Change paths in the metastore after a storage root was copied to another place."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, func, literal, update

from drawdown.metastore.tables import read_files, staged_files


def move_files(conn: Connection, pipeline: str, generation: int, roots: Iterable[tuple[str, str]]) -> int:
    """Replace the first root of each pair by the second at the start of paths; return how many changed."""
    changed = 0
    for old, new in roots:
        for table in (staged_files, read_files):
            here = table.c
            done = conn.execute(
                update(table)
                .where(
                    here.pipeline == pipeline,
                    here.generation == generation,
                    func.substr(here.path, 1, len(old)) == old,
                )
                .values(path=literal(new).concat(func.substr(here.path, len(old) + 1)))
            )
            changed += done.rowcount
    return changed
