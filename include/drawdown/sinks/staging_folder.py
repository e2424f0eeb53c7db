"""Where rows wait until a publish has taken them into the target: a folder apart from it."""

from __future__ import annotations

from collections.abc import Collection

from drawdown.layout import staged_of
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace


def staging_folder(pipeline: Pipeline) -> str:
    """The folder, relative to the storage root, in which each run has one of its own."""
    return "/".join(filter(None, (staged_of(pipeline.name), pipeline.apart)))


def remove_merged(workspace: Workspace, pipeline: str, generation: int, merged: Collection[int]) -> None:
    """Remove the staged output of batches that the target has taken in; again is no error.

    Needs no lease: whoever else publishes these batches finds them in the target, and asks for no file.
    """
    for _, file in workspace.metastore.staged_files(pipeline, generation, merged, table="output"):
        workspace.storage.delete(workspace.storage.relative(file.path))
