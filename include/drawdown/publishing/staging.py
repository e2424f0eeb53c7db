"""Where rows wait until a publish has taken them into the target: a folder apart from it."""

from __future__ import annotations

from collections.abc import Collection

from drawdown.metastore import Metastore
from drawdown.spec import Pipeline
from drawdown.storage import Storage


def staging_folder(pipeline: Pipeline) -> str:
    """The folder, relative to the storage root, in which each run has one of its own."""
    return "/".join(filter(None, (f"_drawdown/{pipeline.name}/staged", pipeline.apart)))


def remove_merged(
    metastore: Metastore, storage: Storage, pipeline: str, generation: int, merged: Collection[int]
) -> None:
    """Remove the staged output of batches that the target has taken in; again is no error.

    Needs no lease: whoever else publishes these batches finds them in the target, and asks for no file.
    """
    for _, file in metastore.staged_files(pipeline, generation, merged, table="output"):
        storage.delete(storage.relative(file.path))
