"""The files that a replay reads: all that the live query has read, if they still exist."""

from __future__ import annotations

from drawdown.checkpoint import SeenFile, plain_path
from drawdown.errors import RefusedError
from drawdown.sources.files.all_files import list_source_files
from drawdown.sources.files.kind import FILE_FORMATS
from drawdown.sources.replay_basis import ReplayBasis
from drawdown.sources.replay_bound import does_without, from_then_on, newest_until
from drawdown.spec import Pipeline
from drawdown.values.interval import Interval
from drawdown.workspace import Workspace


def files_to_read(
    workspace: Workspace,
    pipeline: Pipeline,
    basis: ReplayBasis,
    name: str,
    interval: Interval,
) -> list[str]:
    """Return absolute paths of the files of a source that a replay of this interval reads.

    Raises:
        RefusedError: ``replay.files-gone``; ``source`` errors of the listing.
    """
    source = pipeline.sources[name]
    given = {option.lower(): value for option, value in source.options.items()}
    there = {plain_path(info.path) for info in list_source_files(workspace.storage, source.path or "", given)}
    read = basis.past.read_files(name)
    gone = [file for file in read if file.path not in there]
    if gone:
        _refuse_gone(workspace, pipeline, basis, name, interval, gone)
    return [file.path for file in read if file.path in there]


def refuse_gone_files(
    workspace: Workspace, pipeline: Pipeline, basis: ReplayBasis, interval: Interval
) -> None:
    """Check every file source; raises what `files_to_read` raises."""
    for name, source in pipeline.streaming_sources.items():
        if source.format in FILE_FORMATS:
            files_to_read(workspace, pipeline, basis, name, interval)


def _refuse_gone(
    workspace: Workspace,
    pipeline: Pipeline,
    basis: ReplayBasis,
    name: str,
    interval: Interval,
    gone: list[SeenFile],
) -> None:
    source = pipeline.sources[name]
    entry = max(file.log_offset for file in gone)
    number = basis.past.source_order.index(name)
    reads = (
        batch.batch_id
        for batch in workspace.metastore.batches(pipeline.name, basis.checkpoint.generation)
        if batch.offsets_to and (batch.offsets_to[number] or {}).get("logOffset", -1) >= entry
    )
    last = next(reads, None)
    bound = None if last is None else newest_until(workspace.metastore, pipeline, basis, name, last)
    if does_without(pipeline, interval, bound):
        return
    archive = source.options.get("sourceArchiveDir")
    copies = workspace.storage.path(str(archive)) if archive else "a copy"
    raise RefusedError(
        "replay.files-gone",
        f"{len(gone)} of the files that source {name} of {pipeline.name} has read are gone, for example"
        f" {gone[-1].path}: {interval} cannot be replayed{from_then_on(pipeline, bound)}",
        where=workspace.storage.path(source.path or ""),
        do=f"restore them from {copies}; drains will not read them again",
    )
