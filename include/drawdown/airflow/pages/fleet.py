"""The fleet page: a row a pipeline, worst first, with what to do about it."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from drawdown.airflow.pages.access import ReadableDags
from drawdown.airflow.pages.frame import answer
from drawdown.airflow.pages.parameters import PageNumber
from drawdown.fleet.started_clusters import RedCluster, red_clusters
from drawdown.metastore import Metastore
from drawdown.observe.figures import Seen
from drawdown.observe.filters import Filter
from drawdown.observe.fleet_view import PAGE, fleet
from drawdown.observe.next_steps import next_step
from drawdown.spec import load_project
from drawdown.values.text import in_utc

router = APIRouter()


@router.get("/fleet")
def fleet_page(
    request: Request, dags: ReadableDags, wanted: Annotated[Filter, Depends()], page: PageNumber = 1
) -> Response:
    """Return the pipelines of the DAGs that the user may read."""
    with Metastore.open(load_project().metastore_url) as metastore:
        found = fleet(metastore, dags, wanted, page)
        red = [each for each in red_clusters(metastore) if _may_see(dags, each)]
    return answer(
        request,
        "fleet.html",
        {
            "title": "Fleet",
            "red": [{"why": each.sentence, "command": each.do} for each in red],
            "rows": [_row(seen) for seen in found.shown],
            "found": found.found,
            "page": page,
            "pages": max(1, math.ceil(found.found / PAGE)),
            "states": found.states,
            "choices": found.choices,
            "wanted": wanted,
            "oldest": found.oldest,
        },
    )


def _may_see(dags: Collection[str] | None, cluster: RedCluster) -> bool:
    """Whether a cluster is of a DAG that the user may read; that of a command is of none."""
    dag_id = cluster.record.asked_by.get("dag_id")
    return dags is None or dag_id is None or dag_id in dags


def _row(seen: Seen) -> dict[str, Any]:
    figures, step = seen.figures, next_step(seen)
    last, held = figures.last, figures.held
    return {
        "pipeline": figures.pipeline,
        "dag_id": figures.dag_id,
        "state": seen.finding.state,
        "why": seen.finding.why,
        "do": step.sentence,
        "command": step.command,
        "place": step.place,
        "run": last.origin if last is not None else {},
        "backlog": figures.backlog,
        "backlog_at": figures.backlog_at,
        "age": seen.age,
        "published_at": figures.published_at,
        "promise": figures.promise,
        "is_late": seen.is_late,
        "bars": [(bar.outcome, f"{bar.outcome}, {in_utc(bar.started_at)}") for bar in figures.bars],
        "held": held,
        "held_for": None if held is None else seen.now - held.since,
        "watermark_lag": None if figures.watermark is None else seen.now - figures.watermark,
        "cost": figures.cost,
        "recorded_at": seen.recorded_at,
    }
