"""`drawdown cost`: what pipelines asked for, used and cost, beside a stream that is always on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.screen import out, print_json
from drawdown.errors import SpecError

if TYPE_CHECKING:
    from drawdown.cost.charges import Charge
    from drawdown.cost.report import PipelineCost
    from drawdown.metastore import Metastore
    from drawdown.spec import Project


class By(StrEnum):
    """What a line is about."""

    pipeline = "pipeline"
    day = "day"


def cost(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", show_default=False)] = None,
    days: Annotated[int, typer.Option(min=1, max=3_650, help="Look back so many days.")] = 30,
    by: Annotated[By, typer.Option(help="One line a pipeline, or one a day (UTC).")] = By.pipeline,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Show what runs asked for, used and cost, and the schedule at which always on would be cheaper.

    Prices come from `price:` in the cluster profiles of include/project.yaml, as they were when a run began.
    """
    from drawdown.cli.shown.cost import day_table, day_values, notes, pipeline_table, pipeline_values, summary
    from drawdown.cost.report import by_day, by_pipeline
    from drawdown.metastore import Metastore
    from drawdown.spec import load_project

    project = load_project()
    with Metastore.open(project.metastore_url) as metastore:
        now = metastore.now()
        since = now - timedelta(days=days)
        found = _charges(metastore, since)
        costs = by_pipeline(found, since, now, metastore.applications.first_runs(), _groups(project))
    costs = _chosen(project, costs, names or [])
    shown = {each.pipeline for each in costs}
    found = [each for each in found if each.pipeline in shown]
    if by is By.day:
        bills = by_day(found)
        values, table = day_values(bills), day_table(bills)
    else:
        values, table = pipeline_values(costs), pipeline_table(costs)
    if as_json:
        return print_json(values)
    out().print(table)
    for line in (*summary(found), *notes(costs, crossings=by is By.pipeline)):
        out().print(line, markup=False)
    return None


def _charges(metastore: Metastore, since: datetime) -> list[Charge]:
    from drawdown.cost.charges import charges

    return list(charges(*metastore.applications.since(since)))


def _groups(project: Project) -> dict[str, str]:
    """Pipeline to group; a broken folder has none."""
    from drawdown.spec import Pipeline, iter_pipelines

    return {
        each.name: each.group for each in iter_pipelines(project) if isinstance(each, Pipeline) and each.group
    }


def _chosen(project: Project, costs: Sequence[PipelineCost], names: Sequence[str]) -> list[PipelineCost]:
    """Of the pipelines named; a folder that is gone may have had runs."""
    from drawdown.spec import pipeline_names
    from drawdown.values.nearest import did_you_mean

    known = {*pipeline_names(project), *(each.pipeline for each in costs)}
    for name in names:
        if name not in known:
            raise SpecError(
                "cli.no-pipeline",
                f"there is no pipeline {name}, and no run of one: {did_you_mean(name, known)}",
                where=str(project.pipelines_dir),
                do="`drawdown cost` shows all",
            )
    return [each for each in costs if not names or each.pipeline in names]
