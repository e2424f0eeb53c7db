"""What waits at a Delta source: the table's version against the offset in the checkpoint.

Source: org.apache.spark.sql.delta.sources.DeltaSourceOffset (Delta 4.4). When a version is read to its
end, the offset names the next one (``reservoirVersion`` n + 1), also for commits without data, so a
table that stands below the offset has nothing new. The offset names the table by its id too
(``reservoirId``): one that was made again has another, whatever its version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drawdown.errors import SourceError
from drawdown.sources.committed_offsets import SourceProgress
from drawdown.sources.findings import SourceFinding
from drawdown.spec import Pipeline
from drawdown.storage import Storage


def waiting(at: SourceProgress) -> SourceFinding:
    """What waits at a source that is a Delta table; see `delta_backlog`."""
    return delta_backlog(at.workspace.storage.path(at.source.path or ""), at.past.offset(at.name))


def delta_backlog(table: str, offset: dict[str, Any] | None) -> SourceFinding:
    """Versions of a Delta table that the offset does not cover; None: no offset yet.

    Args:
        table: path or URL of the table.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        found = DeltaTable(table)
        version, id = found.version(), str(found.metadata().id)
    except TableNotFoundError:
        return SourceFinding((f"there is no Delta table at {table}",))
    except (DeltaError, OSError) as error:
        return SourceFinding((f"the Delta table at {table} cannot be read: {error}",))
    if offset and id != offset["reservoirId"]:
        return SourceFinding((f"the Delta table at {table} is another one than was read: it was made again",))
    following = int(offset["reservoirVersion"]) if offset else 0
    waiting = max(version + 1 - following, 0)
    reasons = (f"{waiting} new version(s) of {table}",) if waiting else ()
    return SourceFinding(reasons, {"versions": waiting})


def refuse_made_again(storage: Storage, pipeline: Pipeline, offsets: Mapping[str, Any]) -> None:
    """Look at every Delta source whether it is the table that was read; one that is gone is left out.

    Args:
        offsets: by source as far as it was read.

    Raises:
        SourceError: ``source.made-again``. Spark would refuse it too, in words of its own.
    """
    for name in made_again(storage, pipeline, offsets):
        raise SourceError(
            "source.made-again",
            f"the table of source {name} of {pipeline.name} was deleted and made again since it was read:"
            " nothing tells which of its rows are new",
            where=storage.path(pipeline.sources[name].path or ""),
            do="bring the old table back; or, for all rows of the new one, say `failOnDataLoss: false` in the"
            f" source's options in {pipeline.folder.name}/next/pipeline.yaml and `drawdown rebuild start"
            f" {pipeline.name}` (Delta sinks); or make a new pipeline folder with a sink of its own",
        )


def made_again(storage: Storage, pipeline: Pipeline, offsets: Mapping[str, Any]) -> Iterator[str]:
    """The Delta sources whose table has another id than the one that was read."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    for name, source in pipeline.streaming_sources.items():
        offset = offsets.get(name)
        if source.format not in ("delta", "table") or not isinstance(offset, dict):
            continue
        try:
            id = str(DeltaTable(storage.path(source.path or "")).metadata().id)
        except (DeltaError, OSError):
            continue  # whoever reads it says what is wrong
        if offset.get("reservoirId", id) != id:
            yield name
