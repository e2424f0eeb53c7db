"""Folders that sources read: a link that leads out of the storage root is refused, as every run would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from drawdown.errors import RefusedError, SpecError
from drawdown.spec import Pipeline, Project
from drawdown.static_checks.places import Places
from drawdown.storage.containment import check_links


def local_root(project: Project) -> Path | None:
    """The storage root as a folder of this machine; None when it is in an object store."""
    root = project.storage_root.removeprefix("file://")
    return None if "://" in root else Path(root)


def check_landing_folders(project: Project, pipeline: Pipeline, places: Places) -> Iterator[SpecError]:
    """``source.outside-root``"""
    root = local_root(project)
    for name, source in pipeline.sources.items():
        if root is None or source.path_below_root is None:
            continue
        try:
            check_links(root, source.path_below_root)
        except RefusedError as error:
            yield SpecError(
                "source.outside-root",
                f"source {name} would read outside the storage root: {error.what}",
                where=places.key("pipeline.yaml", "sources", name, "path"),
                do="put the files themselves below the storage root, or mount the folder there",
            )
        except OSError:  # a link in a loop; what reads it says so
            continue
