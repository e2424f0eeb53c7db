"""The path of a source, checked to exist."""

from __future__ import annotations

from drawdown.errors import SourceError
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage

UNREADABLE = ("source.missing", "source.not-a-folder")
"""Ids of the errors of `existing_path`: a run with one of them cannot read the source at all."""

_KEPT = ".drawdown-source"


def existing_path(project: Project, pipeline: Pipeline, name: str) -> str:
    """Return the path of a source as Spark takes it. Raises SourceError: one of UNREADABLE."""
    source = pipeline.sources[name]
    storage = Storage.of_source(project, source)
    assert source.path is not None  # the spec has one, or that of its table (spec/loader.py)
    if any(mark in source.path for mark in "*?[{"):
        return storage.path(source.path)
    if not storage.exists(source.path):
        if not storage.is_local and source.is_files:
            # A bucket has no empty folders: a prefix is there with its first object, which Spark waits for.
            storage.create(f"{source.path}/{_KEPT}", b"")
            return storage.path(source.path)
        raise SourceError(
            "source.missing",
            f"source {name} of {pipeline.name}: {source.path} does not exist in the storage",
            where=storage.path(source.path),
            do="create the folder, or correct `path:`, which is relative to `storage_root:`",
        )
    if source.is_files and storage.info(source.path) is not None:
        raise SourceError(
            "source.not-a-folder",
            f"source {name} of {pipeline.name}: {source.path} is a file, not a folder",
            where=storage.path(source.path),
            do="put the folder back; or name the folder in `path:`, and the files in it by a pattern",
        )
    return storage.path(source.path)
