"""`drawdown cost`: what pipelines requested, used and cost, compared with an always-on stream."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.arguments import Json, Names, Wide
from drawdown.cli.chosen import chosen, require_known
from drawdown.cli.screen import out, print_json
from drawdown.spec import Pipeline, iter_pipelines, load_project

if TYPE_CHECKING:
    from drawdown.cost.charges import Charge
    from drawdown.metastore import Metastore
    from drawdown.spec import Project

_MOST_RUNS = 10_000
"""The newest of a pipeline that --what-if looks at."""


class By(StrEnum):
    """What each line sums up."""

    pipeline = "pipeline"
    day = "day"


def cost(
    names: Names = None,
    days: Annotated[int, typer.Option(min=1, max=3_650, help="Number of days to look back.")] = 30,
    by: Annotated[By, typer.Option(help="One line per pipeline, or one per day (UTC).")] = By.pipeline,
    hypothetical: Annotated[
        bool,
        typer.Option("--what-if", help="What other cluster profiles and schedules would have cost a day."),
    ] = False,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """Show what runs requested, used and cost, and the schedule at which an always-on stream would be
    cheaper.

    Prices come from `price:` in the cluster profiles of include/project.yaml, as they were when the run
    began; --what-if takes the prices of today.
    """
    if hypothetical:
        if by is By.day:
            raise typer.BadParameter("--what-if has lines for profiles and schedules: leave out --by")
        return _what_if(names or (), days, wide=wide, as_json=as_json)
    from drawdown.cli.shown.cost import day_table, day_values, notes, pipeline_table, pipeline_values, summary
    from drawdown.cost.report import by_day, by_pipeline
    from drawdown.workspace import Workspace

    project = load_project()
    with Workspace.open(project) as workspace:
        metastore = workspace.metastore
        for name in names or ():
            require_known(workspace, name)
        now = metastore.now()
        since = now - timedelta(days=days)
        found = _charges(metastore, since)
        costs = by_pipeline(found, since, now, metastore.applications.first_runs(), _groups(project))
    costs = [each for each in costs if not names or each.pipeline in names]
    shown = {each.pipeline for each in costs}
    found = [each for each in found if each.pipeline in shown]
    if by is By.day:
        bills = by_day(found)
        values, table = day_values(bills), day_table(bills, wide=wide)
    else:
        values, table = pipeline_values(costs), pipeline_table(costs, wide=wide)
    if as_json:
        return print_json(values)
    if not costs:
        return out().print(f"no run in the last {days} days", markup=False)
    out().print(table)
    for line in (*summary(found), *notes(costs, crossings=by is By.pipeline)):
        out().print(line, markup=False)
    return None


def _what_if(names: Sequence[str], days: int, *, wide: bool, as_json: bool) -> None:
    from drawdown.cli.shown.what_if import what_if_notes, what_if_table, what_if_values
    from drawdown.cost.what_if import Asked, what_if
    from drawdown.workspace import Workspace

    project = load_project()
    there = chosen(project, names, every=False) if names else list(iter_pipelines(project))
    pipelines = [each for each in there if isinstance(each, Pipeline)]
    groups = _groups(project)
    found = []
    with Workspace.open(project) as workspace:
        metastore = workspace.metastore
        since = metastore.now() - timedelta(days=days)
        for each in pipelines:
            runs = metastore.applications.of_pipeline(each.name, since, _MOST_RUNS)
            together = [name for name, group in groups.items() if group == each.group] or [each.name]
            freshness = each.freshness.delta if each.freshness else None
            asked = Asked(each.name, project.clusters, freshness, Fraction(1, len(together)))
            found.append(what_if(asked, runs))
    if as_json:
        return print_json({"pipelines": [what_if_values(each) for each in found]})
    for answer in found:
        if answer.options:
            out().print(what_if_table(answer, wide=wide))
        for line in what_if_notes(answer):
            out().print(line, markup=False)
    return None


def _charges(metastore: Metastore, since: datetime) -> list[Charge]:
    from drawdown.cost.charges import charges

    return list(charges(*metastore.applications.since(since)))


def _groups(project: Project) -> dict[str, str]:
    """Map pipelines to groups; a broken folder has none."""
    return {
        each.name: each.group for each in iter_pipelines(project) if isinstance(each, Pipeline) and each.group
    }
