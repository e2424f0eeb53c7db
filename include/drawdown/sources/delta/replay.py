"""The version of a Delta table that a replay reads: the last one that the live query has read completely.

The table is read as of that version, not commit by commit: rows that were changed or deleted by then are read
as they were then, even if the stream skipped that commit (skipChangeCommits). So a replay of one pipeline
reaches the pipelines that read its table.

Source: org.apache.spark.sql.delta.sources.DeltaSourceOffset (Delta 4.4): after a complete version the offset
names the next one and has the index -1; any other index, or isStartingVersion, is in the middle of a version.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from drawdown.errors import RefusedError, SourceError
from drawdown.sources.replay_basis import ReplayedSource
from drawdown.spec import Pipeline
from drawdown.storage import object_options

_WHOLE = -1
_REPLAY = "drawdown.replay"


def version_to_read(of: ReplayedSource) -> int | None:
    """Return the version of a Delta source that a replay reads; None when the query had read none by then.

    Raises:
        RefusedError: ``replay.half-read``, ``replay.version-gone``, ``replay.source-ahead``.
        SourceError: ``source.unreadable``.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    offset, pipeline, storage = of.basis.past.offset(of.name), of.pipeline, of.workspace.storage
    if offset is None:
        return None
    folder = of.source.path or ""
    path = storage.path(folder)
    half = _half_read(offset)
    version = int(offset["reservoirVersion"]) - (0 if half else 1)
    whose = f"source {of.name} of {pipeline.name}"
    try:
        table = DeltaTable(path, storage_options=object_options(path))
        then = _as_of(table, path, version)
    except (DeltaError, OSError) as cause:
        said = str(cause).splitlines()[0]
        raise SourceError(
            "source.unreadable", f"the Delta table of {whose} cannot be read: {said}", where=path,
            do="check whether it was moved or deleted",
        ) from None  # fmt: skip
    if half:
        raise _refused(
            "half-read",
            f"{pipeline.name} has read version {version} of the table of {whose} in part",
            path,
            pipeline,
        )
    if str(table.metadata().id) != offset["reservoirId"]:
        raise _refused(
            "version-gone", f"the table of {whose} was recreated since it was read", path, pipeline
        )
    if then is None or any(not storage.exists(f"{folder}/{file}") for file in then - _files(table)):
        raise _refused(
            "version-gone", f"version {version} of the table of {whose} is cleaned up", path, pipeline
        )
    for commit in table.history(table.version() - version) if table.version() > version else ():
        if _REPLAY in commit:
            raise _refused(
                "source-ahead",
                f"{commit[_REPLAY]} of the table of {whose} was replayed in version {commit['version']}, and"
                f" {pipeline.name} has read up to version {version}: the old rows would be read",
                path,
                pipeline,
            )
    return version


def _half_read(offset: dict[str, Any]) -> bool:
    return bool(offset.get("isStartingVersion")) or offset.get("index", _WHOLE) != _WHOLE


def _as_of(table: Any, path: str, version: int) -> set[str] | None:
    """Return the files of a version; None when the log no longer reaches back to it."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    if version == table.version():
        return _files(table)
    try:
        return _files(DeltaTable(path, version=version, storage_options=object_options(path)))
    except DeltaError:
        return None


def _files(table: Any) -> set[str]:
    """Return unescaped paths below the table's folder, without files of another table (a clone)."""
    import pyarrow as pa

    paths = pa.table(table.get_add_actions(flatten=True)).column("path").to_pylist()
    return {unquote(path) for path in paths if "://" not in path and not path.startswith("/")}


def _refused(id: str, what: str, where: str, pipeline: Pipeline) -> RefusedError:
    return RefusedError(
        f"replay.{id}", what, where=where,
        do=f"`drawdown run {pipeline.name}` brings it to the newest version; then replay",
    )  # fmt: skip
