"""Refuse state inside a project folder that the next deployment replaces.

git-sync moves a link to a new folder for each commit, and Airflow keeps each version of a DAG bundle in its
own folder. A metastore or a storage root inside would be empty after each deployment, and all rows would be
read again.
"""

from __future__ import annotations

from pathlib import Path

from airflow.dag_processing.bundles.base import get_bundle_storage_root_path

from drawdown.errors import SpecError
from drawdown.spec import STATE, Project

_SQLITE = "sqlite:///"


def refuse_state_that_moves(given: Path, project: Project) -> None:
    """Raise SpecError ``project.state-moves`` for storage or a metastore below a versioned root.

    Args:
        given: the root as the DAG file names it, links not followed.
    """
    if not _is_versioned(given.absolute()):
        return
    places = {"storage_root": project.storage_root, "metastore": project.metastore_url.removeprefix(_SQLITE)}
    inside = [key for key, place in places.items() if Path(place).is_relative_to(project.root)]
    if inside:
        raise SpecError(
            "project.state-moves",
            f"{' and '.join(inside)} of include/project.yaml are in the project's folder, which changes"
            " with every deployment: all rows would be read again",
            where=str(given),
            do=f"set {STATE} to a permanent folder, for Airflow and every `drawdown` command, or use"
            " absolute paths (docs/deployment.md)",
        )


def _is_versioned(root: Path) -> bool:
    return root != root.resolve() or root.is_relative_to(_bundles())


def _bundles() -> Path:
    return Path(get_bundle_storage_root_path())  # type: ignore[no-untyped-call]
