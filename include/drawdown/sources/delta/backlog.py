"""The backlog of a Delta source: the table's version compared with the offset in the checkpoint.

Source: org.apache.spark.sql.delta.sources.DeltaSourceOffset (Delta 4.4). When a version is read to its
end, the offset names the next one (``reservoirVersion`` n + 1), also for commits without data, so a
table whose version is below the offset has nothing new. The offset also holds the table's id
(``reservoirId``): a recreated table has another id, whatever its version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from drawdown.errors import SourceError
from drawdown.sources.committed_offsets import SourceProgress
from drawdown.sources.existing_path import existing_path
from drawdown.sources.findings import SourceFinding
from drawdown.spec import Pipeline
from drawdown.storage import Storage, object_options
from drawdown.values.text import counted

if TYPE_CHECKING:
    from deltalake import DeltaTable


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
    if version + 1 < following:
        return SourceFinding((f"the Delta table at {table} is older than what was read of it",))
    waiting = max(version + 1 - following, 0)
    reasons = (f"{counted(waiting, 'new version')} of {table}",) if waiting else ()
    return SourceFinding(reasons, {"versions": waiting})


def refuse_made_again(storage: Storage, pipeline: Pipeline, offsets: Mapping[str, Any]) -> None:
    """Refuse a Delta source whose table is not the one that was read, or is an older copy of it.

    Missing tables are skipped.

    Args:
        offsets: by source, how far it was read.

    Raises:
        SourceError: ``source.made-again``, ``source.older-copy``. Spark would refuse a table with another id,
            but not say what to do; an older copy it takes for one without anything new.
    """
    for name, table in _tables(storage, pipeline, offsets):
        offset, source = offsets[name], f"source {name} of {pipeline.name}"
        where, version = storage.path(pipeline.sources[name].path or ""), table.version()
        rebuild = f"`drawdown rebuild start {pipeline.name}` (Delta sinks)"
        new_start = f"{rebuild}; or make a new pipeline folder with its own sink"
        if offset.get("reservoirId", table.metadata().id) != table.metadata().id:
            raise SourceError(
                "source.made-again",
                f"the table of {source} was recreated since it was read: it is unknown which of its rows are"
                " new",
                where=where,
                do="restore the old table; or, to read all of the new one, set `failOnDataLoss: false` in"
                f" the source's options in {pipeline.folder.name}/next/pipeline.yaml and {new_start}",
            )
        if version + 1 < offset.get("reservoirVersion", 0):
            raise SourceError(
                "source.older-copy",
                f"the table of {source} has versions up to {version}, and version"
                f" {offset['reservoirVersion'] - 1} was read: an older copy was put back, and new versions"
                " would be skipped until there are as many as before",
                where=where,
                do=f"put the newer copy back; or read all rows again: {new_start}",
            )


def made_again(storage: Storage, pipeline: Pipeline, offsets: Mapping[str, Any]) -> Iterator[str]:
    """Yield the Delta sources whose table has another id than the table that was read."""
    for name, table in _tables(storage, pipeline, offsets):
        id = str(table.metadata().id)
        if offsets[name].get("reservoirId", id) != id:
            yield name


def _tables(
    storage: Storage, pipeline: Pipeline, offsets: Mapping[str, Any]
) -> Iterator[tuple[str, DeltaTable]]:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    for name, source in pipeline.streaming_sources.items():
        offset = offsets.get(name)
        if source.format not in ("delta", "table") or not isinstance(offset, dict):
            continue
        try:
            path = storage.path(source.path or "")
            table = DeltaTable(path, storage_options=object_options(path))
        except (DeltaError, OSError):
            continue  # reading the table reports what is wrong
        yield name, table
