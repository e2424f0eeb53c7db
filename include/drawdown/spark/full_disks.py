"""A full disk: what is free on each of a run's disks."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from drawdown.errors import SourceError
from drawdown.layout import home_of
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage

_FULL = (
    "No space left on device",
    "Disk quota exceeded",
    # As Hadoop says it of the folder in which blocks wait for their upload; behind it, how much is free.
    "as the max capacity in any directory",
)
_USERS_CODE = "Traceback (most recent call last):"
_MEGABYTE = 1_000_000


def full_disk(project: Project, pipeline: Pipeline, said: str) -> SourceError | None:
    """Return the error ``storage.full`` when a failed run's message says so; else None.

    Args:
        said: the whole message. Errors of the user's own Python code are not about our disks.
    """
    if _USERS_CODE in said or not any(mark in said for mark in _FULL):
        return None
    disks = _disks(project, pipeline)
    full = {what: (folder, free) for what, (folder, free) in disks.items() if free < _MEGABYTE} or disks
    places = "; ".join(f"{free:,} bytes free for the {what} at {at}" for what, (at, free) in full.items())
    return SourceError(
        "storage.full",
        "no space left on a disk" + (f": {places}" if places else ""),
        where=f"pipeline {pipeline.name}",
        do=f"free space there, then `drawdown run {pipeline.name}`: the interrupted batch is replayed, and"
        " none of its rows is visible before that",
    )


def _disks(project: Project, pipeline: Pipeline) -> dict[str, tuple[Path, int]]:
    """Return, by what is kept there, the folder (or its nearest existing parent) and the free bytes."""
    storage = Storage.of(project)
    places = {"working files of Spark": Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()))}
    if storage.is_local:
        local = storage.path("").removeprefix("file://").removeprefix("local:")
        places = {"checkpoint": Path(local, home_of(pipeline.name)), **places}
        if pipeline.sink.path is not None:
            places = {"sink": Path(local, pipeline.sink.path), **places}
    found = {}
    for what, folder in places.items():
        there = next((part for part in (folder, *folder.parents) if part.exists()), None)
        if there is not None:
            found[what] = (there, shutil.disk_usage(there).free)
    return found
