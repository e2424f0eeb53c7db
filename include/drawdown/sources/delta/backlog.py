"""The backlog of a Delta source: the table's version compared with the offset in the checkpoint.

Source: org.apache.spark.sql.delta.sources.DeltaSourceOffset (Delta 4.4). When a version is read to its
end, the offset names the next one (``reservoirVersion`` n + 1), also for commits without data, so a
table whose version is below the offset has nothing new. The offset also holds the table's id
(``reservoirId``): a recreated table has another id, whatever its version.
"""

from __future__ import annotations

from typing import Any

from drawdown.sources.committed_offsets import SourceProgress
from drawdown.sources.existing_path import existing_path
from drawdown.sources.findings import SourceFinding
from drawdown.storage import object_options
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
    if version + 1 < following:
        return SourceFinding((f"the Delta table at {table} is older than what was read of it",))
    waiting = max(version + 1 - following, 0)
    reasons = (f"{counted(waiting, 'new version')} of {table}",) if waiting else ()
    return SourceFinding(reasons, {"versions": waiting})
