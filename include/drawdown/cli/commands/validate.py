"""`drawdown validate`: checks all specs and reports every problem at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from drawdown.cli.arguments import Json, Names
from drawdown.cli.screen import out, print_json, show_error, working
from drawdown.errors import DrawdownError, SpecError
from drawdown.quality.expectations import validate_expectations
from drawdown.spec import iter_pipelines, load_pipeline, load_project, pipeline_names

if TYPE_CHECKING:
    from drawdown.spec import Pipeline, Project


def validate(
    names: Names = None,
    as_json: Json = False,
) -> None:
    """Check all or some specs: YAML, keys, paths, groups, expectations. Changes nothing."""
    project = load_project()
    found = check(project, names or [])
    if as_json:
        print_json([{"pipeline": name, "error": error and error.as_dict()} for name, error in found.items()])
    else:
        for name, error in found.items():
            if error is None:
                out().print(f"[green]✓[/] {name}")
            else:
                show_error(error)
        if not found:
            out().print("there are no pipelines; `drawdown init NAME` creates one")
    code = next((error.exit_code for error in found.values() if error), 0)
    raise typer.Exit(code)


def check(project: Project, names: Sequence[str]) -> dict[str, DrawdownError | None]:
    """Return the error of each pipeline, None if valid; checks all pipelines when ``names`` is empty.

    All specs are always read: conflicts between specs show only when both are known.

    Raises:
        SpecError: ``spec.no-pipeline`` for an unknown name.
    """
    from drawdown.static_checks.check import static_error

    every = dict(zip(pipeline_names(project), iter_pipelines(project), strict=True))
    for name in names:
        if name not in every:
            load_pipeline(project, name)
    loaded = [each for each in every.values() if not isinstance(each, SpecError)]
    found: dict[str, DrawdownError | None] = {
        name: each if isinstance(each, SpecError) else None for name, each in every.items()
    }
    wanted = names or list(every)
    with working("checking columns, SQL and expectations"):
        for pipeline in loaded:
            if pipeline.name in wanted and found[pipeline.name] is None:
                found[pipeline.name] = static_error(project, pipeline) or _expectations(pipeline)
    return {name: found[name] for name in dict.fromkeys(wanted)}


def _expectations(pipeline: Pipeline) -> DrawdownError | None:
    from drawdown.quality.common_expectations import is_everyday

    if all(map(is_everyday, pipeline.quality.expectations)):
        return None
    try:
        validate_expectations(pipeline)
    except SpecError as error:
        return error
    return None
