"""`drawdown validate`: read every spec and say what is wrong with all of them in one go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.screen import out, print_json, show_error, working
from drawdown.errors import DrawdownError, SpecError

if TYPE_CHECKING:
    from drawdown.spec import Pipeline, Project


def validate(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Check specs, all or some: YAML, keys, paths, groups, expectations. Touches nothing."""
    from drawdown.spec import load_project

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
            out().print("there are no pipelines; `drawdown init NAME` makes one")
    code = next((error.exit_code for error in found.values() if error), 0)
    raise typer.Exit(code)


def check(project: Project, names: Sequence[str]) -> dict[str, DrawdownError | None]:
    """Pipeline name to what is wrong with it, None for one that is right; all when ``names`` is empty.

    All specs are read also when some are named: what contradicts another spec shows only beside it.

    Raises:
        SpecError: ``spec.no-pipeline`` for a name that is not there.
    """
    from drawdown.spec import iter_pipelines, load_pipeline, pipeline_names

    every = dict(zip(pipeline_names(project), iter_pipelines(project), strict=True))
    for name in names:
        if name not in every:
            load_pipeline(project, name)
    loaded = [each for each in every.values() if not isinstance(each, SpecError)]
    found: dict[str, DrawdownError | None] = {
        name: each if isinstance(each, SpecError) else None for name, each in every.items()
    }
    found |= _cycles(loaded)
    wanted = names or list(every)
    with working("checking expectations"):
        for pipeline in loaded:
            if pipeline.name in wanted and found[pipeline.name] is None:
                found[pipeline.name] = _expectations(pipeline)
    return {name: found[name] for name in dict.fromkeys(wanted)}


def _cycles(pipelines: Iterable[Pipeline]) -> dict[str, DrawdownError | None]:
    """The members of groups that have no order to be drained in."""
    from drawdown.spec.order import in_dependency_order

    groups: dict[str, list[Pipeline]] = defaultdict(list)
    for pipeline in pipelines:
        if pipeline.group:
            groups[pipeline.group].append(pipeline)
    found: dict[str, DrawdownError | None] = {}
    for members in groups.values():
        try:
            in_dependency_order(members)
        except SpecError as error:
            found |= dict.fromkeys((member.name for member in members), error)
    return found


def _expectations(pipeline: Pipeline) -> DrawdownError | None:
    if not pipeline.quality.expectations:
        return None
    from drawdown.quality.expectations import validate_expectations

    try:
        validate_expectations(pipeline)
    except SpecError as error:
        return error
    return None
