"""Which pipelines a command is about: those named, or all; every broken one is reported, not the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from drawdown.cli.screen import show_error
from drawdown.errors import SpecError

if TYPE_CHECKING:
    from drawdown.spec import Pipeline, Project


def chosen(project: Project, names: Sequence[str], *, every: bool) -> list[Pipeline]:
    """The pipelines named, each once, or all when ``every``.

    Shows the error of every broken one and exits with 2 when there is any.

    Raises:
        SpecError: ``cli.no-pipeline``: none was named, or names came with ``--all``, or there is none.
    """
    from drawdown.spec import load_pipeline, pipeline_names

    wanted = pipeline_names(project) if every else list(dict.fromkeys(names))
    if not wanted or (every and names):
        there = ", ".join(pipeline_names(project))
        raise SpecError(
            "cli.no-pipeline",
            "name pipelines or say --all, not both" if names else "no pipeline is named",
            where=str(project.pipelines_dir),
            do=f"name some of: {there}; or say --all" if there else "`drawdown init NAME` makes one",
        )
    pipelines, broken = [], []
    for name in wanted:
        try:
            pipelines.append(load_pipeline(project, name))
        except SpecError as error:
            broken.append(error)
    for each in broken:
        show_error(each)
    if broken:
        raise typer.Exit(SpecError.exit_code)
    return pipelines
