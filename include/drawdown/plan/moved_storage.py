"""Refuses a moved storage root: to the checkpoint every file would be new and be read again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from urllib.parse import unquote

from drawdown.checkpoint import SINK_FIELDS, SOURCE_FIELDS, CheckpointFiles, FileLog, log_offset, plain_path
from drawdown.checkpoint.roots import is_below
from drawdown.errors import RefusedError
from drawdown.layout import OWN
from drawdown.spec import Pipeline
from drawdown.storage import Glob, Storage
from drawdown.workspace import Workspace


def refuse_moved(
    workspace: Workspace, pipeline: Pipeline, files: CheckpointFiles, sink_log: str | None
) -> None:
    """Check the newest entry of each log of files.

    Args:
        sink_log: the folder of a file sink's log, relative to the storage root.

    Raises:
        RefusedError: ``storage.moved``; otherwise as `CheckpointFiles`.
    """
    storage = workspace.storage
    sources = (Storage.of_source(workspace.project, source) for source in pipeline.sources.values())
    roots = {storage.root, *(each.root for each in sources)}
    for log in logs_of_files(storage, files, sink_log):
        for record in log.newest():
            if not any(is_below(record["path"], root) for root in roots):
                _refuse(pipeline, storage, plain_path(unquote(record["path"])))


def logs_of_files(storage: Storage, files: CheckpointFiles, sink_log: str | None) -> Iterator[FileLog]:
    """The logs that name files by absolute paths: of file sources, carriers too, and of a file sink."""
    if (planned := files.last_offset_batch()) is not None:
        for source, offset in files.offsets_by_folder(planned).items():
            if log_offset(offset) is not None:
                yield FileLog(storage, f"{files.path}/sources/{source}", SOURCE_FIELDS)
    if sink_log is not None:
        yield FileLog(storage, sink_log, SINK_FIELDS)


def _refuse(pipeline: Pipeline, storage: Storage, path: str) -> None:
    raise RefusedError(
        "storage.moved",
        f"{pipeline.name} has read and written files below another storage root (for example {path}): every"
        f" file below {storage.root} would be new to it and be read again",
        where=str(pipeline.folder),
        do="restore `storage_root:`; or, if the whole storage was copied here: `drawdown checkpoint move"
        f" {pipeline.name} --from {shlex.quote(_old_root(pipeline, path))}`",
    )


def _old_root(pipeline: Pipeline, path: str) -> str:
    """Return the part of a path before the pipeline's own, as far as it can be recognised."""
    paths = [pipeline.sink.path, *(source.path for source in pipeline.sources.values()), OWN]
    for folder in (glob.prefix for each in paths if each for glob in Glob.parse(each)):
        before, found, _ = path.rpartition(f"/{folder}/")
        if found:
            return before
    return "OLD-ROOT"
