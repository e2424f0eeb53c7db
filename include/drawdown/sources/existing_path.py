"""The path of a source, once something is there."""

from __future__ import annotations

from drawdown.errors import SourceError
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage


def existing_path(project: Project, pipeline: Pipeline, name: str) -> str:
    """The path of a source as Spark takes it. Raises SourceError when nothing is there."""
    source = pipeline.sources[name]
    storage = Storage(project.storage_root)
    assert source.path is not None  # the spec has one, or that of its table (spec/loader.py)
    if not any(mark in source.path for mark in "*?[{") and not storage.exists(source.path):
        raise SourceError(
            "source.missing",
            f"source {name} of {pipeline.name}: there is no {source.path} in the storage",
            where=storage.path(source.path),
            do="create the folder, or correct `path:`, which is relative to `storage_root:`",
        )
    return storage.path(source.path)
