"""The folder, apart from the target, where rows wait until a publish copies them into the target."""

from __future__ import annotations

from collections.abc import Collection

from drawdown.layout import staged_of
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace


def staging_folder(pipeline: Pipeline) -> str:
    """Return the folder, relative to the storage root, in which each run has a folder of its own."""
    return "/".join(filter(None, (staged_of(pipeline.name), pipeline.apart)))


def remove_merged(workspace: Workspace, pipeline: str, generation: int, merged: Collection[int]) -> None:
    """Remove the staged output of batches that are in the target; repeating it is no error.

    Needs no lease: another publish of these batches finds them in the target and reads no file.
    """
    for _, file in workspace.metastore.staged_files(pipeline, generation, merged, table="output"):
        workspace.storage.delete(workspace.storage.relative(file.path))
