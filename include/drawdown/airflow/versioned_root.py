"""A project whose folder is another one after the next deployment: its state must lie elsewhere.

git-sync moves a link to a new folder for each commit, and Airflow keeps each version of a DAG bundle in a
folder of its own. A metastore or a storage root inside would be empty after every one of them, and all rows
would come again.
"""

from __future__ import annotations

from pathlib import Path

from airflow.dag_processing.bundles.base import get_bundle_storage_root_path

from drawdown.errors import SpecError
from drawdown.spec import STATE, Project

_SQLITE = "sqlite:///"


def refuse_state_that_moves(given: Path, project: Project) -> None:
    """Raises SpecError ``project.state-moves`` for storage or a metastore below a root that is versioned.

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
            f"{' and '.join(inside)} of include/project.yaml lie in the project's folder, which is another"
            " one after the next deployment: all rows would come again",
            where=str(given),
            do=f"set {STATE} to a folder that stays, for Airflow and for every `drawdown`, or write absolute"
            " paths (docs/deployment.md)",
        )


def _is_versioned(root: Path) -> bool:
    return root != root.resolve() or root.is_relative_to(_bundles())


def _bundles() -> Path:
    return Path(get_bundle_storage_root_path())  # type: ignore[no-untyped-call]
