"""Files that batches read, with the size and time they had when a batch first read them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sqlalchemy import Connection, delete, insert, select

from drawdown.metastore.records import FileMark
from drawdown.metastore.tables import read_files

_PATHS_PER_STATEMENT = 1000  # both stores bound the parameters of one statement


def note(
    conn: Connection, pipeline: str, generation: int, source: str, files: Mapping[str, FileMark]
) -> None:
    """Record the size and time that files, by path, had when a batch read them, replacing older entries."""
    forget(conn, pipeline, generation, source, files)
    rows = [
        {
            "pipeline": pipeline,
            "generation": generation,
            "source": source,
            "path": path,
            "size": mark.size,
            "mtime_ms": mark.mtime_ms,
        }
        for path, mark in files.items()
    ]
    if rows:
        conn.execute(insert(read_files), rows)


def forget(conn: Connection, pipeline: str, generation: int, source: str, paths: Collection[str]) -> None:
    """Forget these files, so that their current content is accepted at the next read."""
    here = read_files.c
    for part in _parts(paths):
        conn.execute(
            delete(read_files).where(
                here.pipeline == pipeline,
                here.generation == generation,
                here.source == source,
                here.path.in_(part),
            )
        )


def read(
    conn: Connection, pipeline: str, generation: int, source: str, paths: Collection[str] | None = None
) -> dict[str, FileMark]:
    """Return the records of these files of a source, or of all; files read by older versions have none."""
    here = read_files.c
    of = select(here.path, here.size, here.mtime_ms).where(
        here.pipeline == pipeline, here.generation == generation, here.source == source
    )
    asked = [of] if paths is None else [of.where(here.path.in_(part)) for part in _parts(paths)]
    return {path: FileMark(size, mtime) for query in asked for path, size, mtime in conn.execute(query)}


def _parts(paths: Collection[str]) -> Iterator[list[str]]:
    everything = list(paths)
    for start in range(0, len(everything), _PATHS_PER_STATEMENT):
        yield everything[start : start + _PATHS_PER_STATEMENT]
