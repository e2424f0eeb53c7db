"""The calendar of a pipeline's replay intervals, and what to type for those that need a replay."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from drawdown.airflow.pages.access import ReadableDags, may_read_runs
from drawdown.airflow.pages.frame import answer, lasting
from drawdown.airflow.pages.parameters import Moment
from drawdown.observe.calendar.grid import SHORTEST
from drawdown.observe.calendar.view import calendar
from drawdown.observe.dag_pipelines import pipelines_of
from drawdown.observe.pipeline.written import written
from drawdown.spec import load_project
from drawdown.values.dag_ids import OWN
from drawdown.workspace import Workspace

router = APIRouter()


@router.get("/calendar/{dag_id}", dependencies=[Depends(may_read_runs)])
def calendar_page(
    request: Request, dag_id: str, dags: ReadableDags, pipeline: str = "", until: Moment = None
) -> Response:
    """Return the calendar of a pipeline of a DAG: of a group the one that is asked for, or the first."""
    with Workspace.open(load_project()) as workspace:
        names = pipelines_of(workspace, dag_id)
        if not names or (pipeline and pipeline not in names):
            none = {"title": pipeline or dag_id, "dag_id": dag_id, "pipeline": pipeline, "replayed": ""}
            status = 404 if pipeline else 200
            return answer(request, "no_pipeline.html", {**none, "is_own": dag_id in OWN}, status=status)
        name = pipeline or names[0]
        folder = written(workspace, name)
        content: dict[str, Any] = {
            "title": f"Calendar of {name}",
            "dag_id": dag_id,
            "pipeline": name,
            "names": names,
            "problem": folder.problem,
            "calendar": None,
            "too_short": None,
        }
        replay = folder.spec.replay if folder.spec is not None else None
        if replay is not None and replay.interval.delta < SHORTEST:
            content["too_short"] = f"{replay.interval} is shorter than {lasting(SHORTEST)}"
        elif folder.spec is not None and replay is not None:
            content["calendar"] = asdict(calendar(workspace, folder.spec, dags, until))
    return answer(request, "calendar.html", content)
