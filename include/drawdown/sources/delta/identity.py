"""Whether the Delta table of a source is the one that was read: its id, its version and the last commit read.

With each batch a run notes a digest of the last commit that it read from a table (`position`). Table ids and
versions alone do not show an older copy that was put back and has had new commits since: their numbers are
those of commits that were read, and Spark would skip them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from drawdown.errors import SourceError
from drawdown.sources.committed_offsets import CommittedOffsets
from drawdown.spec import Pipeline, Source
from drawdown.storage import Storage, object_options
from drawdown.values.commands import rebuild
from drawdown.workspace import Generation

if TYPE_CHECKING:
    from deltalake import DeltaTable

_READ = "read_version"
"""Key in ``Batch.by_source``: ``{"version": 7, "commit": digest}``, see `position`."""


def position(storage: Storage, source: Source, offset: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of ``Batch.by_source`` about the last commit that was read, completely or in part.

    Returns:
        Empty when the table's log no longer has that commit.
    """
    whole = offset.get("index", -1) < 0 and not offset.get("isStartingVersion")
    version = int(offset["reservoirVersion"]) - (1 if whole else 0)
    commit = _commit(storage, source, version)
    return {} if commit is None else {_READ: {"version": version, "commit": commit}}


def refuse_other_tables(generation: Generation) -> None:
    """Refuse a Delta source whose table is not the one that was read, or is an older copy of it.

    Missing tables are skipped.

    Raises:
        SourceError: ``source.made-again``, ``source.older-copy``. Spark would refuse a table with another id,
            but not say what to do; an older copy it takes for one without anything new.
    """
    pipeline = generation.pipeline
    if not any(source.format in ("delta", "table") for source in pipeline.streaming_sources.values()):
        return
    past = CommittedOffsets.read(generation.storage, generation.checkpoint)
    offsets = past.offsets_of(pipeline)
    last = past.files.last_commit_batch() if past.files is not None else None
    batch = generation.batch(last) if last is not None else None
    for name, table in _tables(generation.storage, pipeline, offsets):
        noted = batch.by_source.get(name, {}).get(_READ) if batch is not None else None
        _refuse_other_table(generation, name, table, offsets[name], noted)


def _refuse_other_table(
    generation: Generation,
    name: str,
    table: DeltaTable,
    offset: Mapping[str, Any],
    noted: Mapping[str, Any] | None,
) -> None:
    pipeline, storage = generation.pipeline, generation.storage
    source, version = pipeline.sources[name], table.version()
    whose, where = f"source {name} of {pipeline.name}", storage.path(source.path or "")
    new_start = f"{rebuild(pipeline.name)} (Delta sinks); or make a new pipeline folder with its own sink"
    if offset.get("reservoirId", table.metadata().id) != table.metadata().id:
        raise SourceError(
            "source.made-again",
            f"the table of {whose} was recreated since it was read: it is unknown which of its rows are new",
            where=where,
            do="restore the old table; or, to read all of the new one, set `failOnDataLoss: false` in"
            f" the source's options in {pipeline.folder.name}/next/pipeline.yaml, and {new_start}",
        )
    if version + 1 < offset.get("reservoirVersion", 0):
        raise SourceError(
            "source.older-copy",
            f"the table of {whose} has versions up to {version}, and version"
            f" {offset['reservoirVersion'] - 1} was read: an older copy was put back, and new versions"
            " would be skipped until there are as many as before",
            where=where,
            do=f"put the newer copy back; or read all rows again: {new_start}",
        )
    if noted is not None and _commit(storage, source, noted["version"]) not in (None, noted["commit"]):
        raise SourceError(
            "source.older-copy",
            f"version {noted['version']} of the table of {whose} is not the one that was read: an older copy"
            " was put back and written to since, and rows under the numbers of read versions would be"
            " skipped",
            where=where,
            do=f"put the newer copy back; or read all rows again: {new_start}",
        )


def made_again(storage: Storage, pipeline: Pipeline, offsets: Mapping[str, Any]) -> Iterator[str]:
    """Yield the Delta sources whose table has another id than the table that was read."""
    for name, table in _tables(storage, pipeline, offsets):
        id = str(table.metadata().id)
        if offsets[name].get("reservoirId", id) != id:
            yield name


def _commit(storage: Storage, source: Source, version: int) -> str | None:
    """Return a digest of one commit in the table's log; None when it is not there."""
    path = f"{source.path}/_delta_log/{version:020}.json"
    if not storage.exists(path):
        return None
    return hashlib.sha256(storage.read_bytes(path)).hexdigest()


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
