"""Sets a source's file aside as a whole, or takes it back: a decision under the lease, with a run record.

For a file that Spark cannot read, that ends its JVM, or that is gone. Its batch may be planned already: the
next run repeats it without the file. Needs no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from drawdown.errors import RefusedError
from drawdown.metastore.records import Run
from drawdown.sources.committed_offsets import CommittedOffsets
from drawdown.sources.files.set_aside import GONE, SetAsideFile, read_set_aside, set_aside, take_back
from drawdown.spec import Pipeline
from drawdown.storage import Storage
from drawdown.values.globs import Glob
from drawdown.workspace import Workspace

KIND = "quarantine-file"


@dataclass(frozen=True)
class FileDecision:
    """One file, and what is to become of it.

    Attributes:
        path: absolute, or below the root of the source's storage.
        back: whether it is taken back, so that later batches, replays and rebuilds read it.
    """

    path: str
    run_id: str
    holder: str
    by: str
    why: str
    back: bool = False


def decide_file(workspace: Workspace, pipeline: Pipeline, asked: FileDecision) -> tuple[str, str]:
    """Set the file aside or take it back; returns its source, and its path below the storage's root.

    Raises:
        BusyError: a run holds the lease.
        RefusedError: ``quarantine.no-file``: no source has it, or it is not set aside.
    """
    metastore = workspace.metastore
    lease = metastore.acquire(pipeline.name, asked.holder, asked.run_id, workspace.project.lease_ttl.delta)
    try:
        source, path = _found(workspace, pipeline, asked)
        origin = {"by": asked.by, "why": asked.why, "source": source, "file": path, "back": asked.back}
        metastore.start_run(Run(asked.run_id, pipeline.name, kind=KIND, holder=asked.holder, origin=origin))
        if asked.back:
            take_back(workspace.storage, pipeline.name, source, [path])
        else:
            _set_aside(workspace, pipeline, source, path, asked)
        done = f"{path} {'taken back' if asked.back else 'set aside'}"
        metastore.finish_run(asked.run_id, "succeeded", stop_reason=done)
    finally:
        metastore.release(lease)
    return source, path


def _set_aside(workspace: Workspace, pipeline: Pipeline, source: str, path: str, asked: FileDecision) -> None:
    info = Storage.of_source(workspace.project, pipeline.sources[source]).info(path)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    size, mtime_ms = (GONE, 0) if info is None else (info.size, info.mtime_ms)
    file = SetAsideFile(path, size, mtime_ms, asked.why, asked.by, at)
    set_aside(workspace.storage, pipeline.name, source, [file])


def _found(workspace: Workspace, pipeline: Pipeline, asked: FileDecision) -> tuple[str, str]:
    for source, storage, path in _places(workspace, pipeline, asked.path):
        if asked.back:
            if path in read_set_aside(workspace.storage, pipeline.name, source):
                return source, path
        elif storage.info(path) is not None or storage.path_of_file(path) in _planned(
            workspace, pipeline, source
        ):
            return source, path
    raise RefusedError(
        "quarantine.no-file",
        f"no source of {pipeline.name} has {'set aside ' if asked.back else ''}the file {asked.path}",
        where=f"pipeline {pipeline.name}",
        do="write the path as the error or the notice of the run has it"
        + ("" if asked.back else "; it must still exist, or be in a batch that is planned"),
    )


def _planned(workspace: Workspace, pipeline: Pipeline, source: str) -> set[str]:
    """Return the paths of the files with which a batch is planned that is not committed."""
    past = CommittedOffsets.read(workspace.storage, workspace.metastore.active_checkpoint(pipeline.name))
    return {file.path for file in past.seen(source)} - {file.path for file in past.read_files(source)}


def _places(workspace: Workspace, pipeline: Pipeline, path: str) -> Iterator[tuple[str, Storage, str]]:
    """Yield the file sources below whose path the file may be."""
    for name, source in pipeline.streaming_sources.items():
        if not source.is_files:
            continue
        storage = Storage.of_source(workspace.project, source)
        try:
            relative = storage.relative(path)
        except RefusedError:
            continue  # a path of another storage
        if any(relative.startswith(f"{glob.prefix}/") for glob in Glob.parse(source.path or "")):
            yield name, storage, relative
