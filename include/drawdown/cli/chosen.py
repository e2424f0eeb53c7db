"""Loads the pipelines that a command names, or all; reports every broken one, not only the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from drawdown.cli.screen import show_error
from drawdown.errors import SpecError

if TYPE_CHECKING:
    from drawdown.spec import Pipeline, Project
    from drawdown.workspace import Workspace


def require_known(workspace: Workspace, name: str) -> None:
    """Refuse a name with neither a folder nor a record: a typing error, not a pipeline without runs.

    Raises:
        SpecError: ``cli.no-pipeline``.
    """
    from drawdown.spec import pipeline_names
    from drawdown.values.nearest import did_you_mean

    folders = pipeline_names(workspace.project)
    if name not in folders and name not in (known := {*folders, *workspace.metastore.names()}):
        raise SpecError(
            "cli.no-pipeline",
            f"there is no pipeline {name[:80]!r}, and no record of one: {did_you_mean(name, known)}",
            where=str(workspace.project.pipelines_dir),
            do=f"`drawdown runs` lists all runs; `drawdown init {name}` creates a pipeline",
        )


def chosen(project: Project, names: Sequence[str], *, every: bool) -> list[Pipeline]:
    """Return the named pipelines, each once, or all when ``every``.

    Raises:
        SpecError: the last broken pipeline's; the others have been shown. ``cli.no-pipeline``: none was
            named, names came with ``--all``, or the project has none.
    """
    from drawdown.spec import load_pipeline, pipeline_names

    wanted = pipeline_names(project) if every else list(dict.fromkeys(names))
    if not wanted or (every and names):
        there = ", ".join(pipeline_names(project))
        raise SpecError(
            "cli.no-pipeline",
            "name pipelines or pass --all, not both" if names else "no pipeline was named",
            where=str(project.pipelines_dir),
            do=f"name some of: {there}; or pass --all" if there else "`drawdown init NAME` creates one",
        )
    pipelines, broken = [], []
    for name in wanted:
        try:
            pipelines.append(load_pipeline(project, name))
        except SpecError as error:
            broken.append(error)
    for each in broken[:-1]:
        show_error(each)
    if broken:
        raise broken[-1]
    return pipelines
