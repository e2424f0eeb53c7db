"""Where things lie: the folders of a project that belong to something, as sets of absolute paths."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drawdown.layout import OWN, QUARANTINE
from drawdown.spec.connections.object_storage import for_spark
from drawdown.spec.project import Project
from drawdown.spec.source import Source
from drawdown.values.path_sets import PathSet, lies_in

_IN_A_PROJECT = (".drawdown", ".git", ".venv", "dags", "dev", "include", "jobs", "plugins")
_IN_THE_STATE = ("airflow", "archive", "jars", "library", "lineage", "logs", "own-jar", "runs")
_SQLITE = "sqlite:///"


@dataclass(frozen=True)
class Place:
    """A folder or file that belongs to something.

    Attributes:
        what: to what, for errors.
        readable: whether a source may read it.
    """

    path: str
    what: str
    readable: bool = False


def address(place: str) -> str:
    """Return a storage root or a bucket in the one spelling in which paths are compared."""
    if place.startswith("file:"):
        return _absolute("/" + place.removeprefix("file:").lstrip("/"))
    return for_spark(place).rstrip("/") if "://" in place else _absolute(place)


def _absolute(path: str | Path) -> str:
    # Not Path.absolute: Hadoop also removes ".." from paths, and the names must be equal.
    return os.path.abspath(path)  # noqa: PTH100


def address_of(project: Project, source: Source) -> str:
    """Return the folder or bucket below which the path of a source is."""
    return address(
        project.storage_root if source.storage is None else project.storages[source.storage].address
    )


def paths_of(project: Project, source: Source) -> PathSet:
    """Return what a source can ever read."""
    return PathSet.of(address_of(project, source), str(source.path))


def archive_of(project: Project, source: Source) -> PathSet | None:
    """Return the folder into which a source moves its files; None if it does not."""
    folder = source.options.get("sourceArchiveDir")
    return None if folder is None else PathSet.one(f"{address_of(project, source)}/{folder}")


def sink_place(project: Project, path: str) -> str:
    return f"{address(project.storage_root)}/{path}"


def landing_places(project: Project, source: Source) -> list[str]:
    """Return the folders in which this source may clean."""
    return [f"{address_of(project, source)}/{folder}" for folder in project.landing]


def own_places(project: Project) -> list[Place]:
    """Return the places of Drawdown and of the project itself that can be below a storage root.

    A folder that holds the storage root is left out, but for its other parts: paths of sources stay below
    the root.
    """
    root = address(project.storage_root)
    places = [
        Place(f"{root}/{OWN}", "checkpoints and staged rows"),
        Place(f"{root}/{QUARANTINE}", "the quarantine", readable=True),
    ]
    folders = [
        *_beside(root, project.root, _IN_A_PROJECT, "the project"),
        *_beside(root, project.state_dir, _IN_THE_STATE, "Drawdown's state"),
    ]
    if project.metastore_url.startswith(_SQLITE):
        file = _absolute(project.metastore_url.removeprefix(_SQLITE))
        folders += [Place(f"{file}{end}", "the metastore") for end in ("", "-wal", "-shm", "-journal")]
    return places + folders


def _beside(root: str, folder: Path, parts: tuple[str, ...], what: str) -> Iterator[Place]:
    whole = _absolute(folder)
    if not lies_in(root, whole):
        yield Place(whole, what)
        return
    for part in parts:
        if not lies_in(root, f"{whole}/{part}"):
            yield Place(f"{whole}/{part}", what)
