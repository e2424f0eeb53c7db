"""The backlog of a Delta source: the table's version compared with the offset in the checkpoint.

Source: org.apache.spark.sql.delta.sources.DeltaSourceOffset (Delta 4.4). When a version is read to its
end, the offset names the next one (``reservoirVersion`` n + 1), also for commits without data, so a
table whose version is below the offset has nothing new. The offset also holds the table's id
(``reservoirId``): a recreated table has another id, whatever its version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drawdown.errors import SourceError
from drawdown.sources.committed_offsets import SourceProgress
from drawdown.sources.existing_path import existing_path
from drawdown.sources.findings import SourceFinding
from drawdown.spec import Pipeline
from drawdown.storage import Storage, object_options
from drawdown.values.text import counted


def waiting(at: SourceProgress) -> SourceFinding:
    """Return what waits at a source that is a Delta table; see `delta_backlog`. Raises SourceError."""
    return delta_backlog(existing_path(at.workspace.project, at.pipeline, at.name), at.past.offset(at.name))


def delta_backlog(table: str, offset: dict[str, Any] | None) -> SourceFinding:
    """Count the versions of a Delta table that the offset does not cover.

    Args:
        table: path or URL of the table.
        offset: None before the first committed batch.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        found = DeltaTable(table, storage_options=object_options(table))
        version, id = found.version(), str(found.metadata().id)
    except TableNotFoundError:
        return SourceFinding((f"there is no Delta table at {table}",))
    except (DeltaError, OSError) as error:
        return SourceFinding((f"the Delta table at {table} cannot be read: {error}",))
    if offset and id != offset["reservoirId"]:
        return SourceFinding((f"the Delta table at {table} was recreated since it was read",))
    following = int(offset["reservoirVersion"]) if offset else 0
    waiting = max(version + 1 - following, 0)
    reasons = (f"{counted(waiting, 'new version')} of {table}",) if waiting else ()
    return SourceFinding(reasons, {"versions": waiting})


def refuse_made_again(storage: Storage, pipeline: Pipeline, offsets: Mapping[str, Any]) -> None:
    """Refuse a Delta source whose table was recreated since it was read; missing tables are skipped.

    Args:
        offsets: by source, how far it was read.

    Raises:
        SourceError: ``source.made-again``. Spark would refuse it too, but not say what to do.
    """
    for name in made_again(storage, pipeline, offsets):
        raise SourceError(
            "source.made-again",
            f"the table of source {name} of {pipeline.name} was recreated since it was read: it is unknown"
            " which of its rows are new",
            where=storage.path(pipeline.sources[name].path or ""),
            do="restore the old table; or, to read all rows of the new one, set `failOnDataLoss: false` in"
            f" the source's options in {pipeline.folder.name}/next/pipeline.yaml and `drawdown rebuild"
            f" start {pipeline.name}` (Delta sinks); or make a new pipeline folder with its own sink",
        )


def made_again(storage: Storage, pipeline: Pipeline, offsets: Mapping[str, Any]) -> Iterator[str]:
    """Yield the Delta sources whose table has another id than the table that was read."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    for name, source in pipeline.streaming_sources.items():
        offset = offsets.get(name)
        if source.format not in ("delta", "table") or not isinstance(offset, dict):
            continue
        try:
            path = storage.path(source.path or "")
            id = str(DeltaTable(path, storage_options=object_options(path)).metadata().id)
        except (DeltaError, OSError):
            continue  # reading the table reports what is wrong
        if offset.get("reservoirId", id) != id:
            yield name
