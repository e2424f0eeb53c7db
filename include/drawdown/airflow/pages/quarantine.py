"""The page of a quarantine: its newest rows by reason and by run, and what replays or drops them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from drawdown.airflow.pages.access import may_read_runs
from drawdown.airflow.pages.frame import answer
from drawdown.airflow.tasks.quarantine_replay import PARAMETER
from drawdown.errors import RefusedError
from drawdown.observe.dag_pipelines import pipelines_of
from drawdown.observe.quarantine_view import LOOKED_AT, QuarantineView, RowFilter, ShownRow, quarantine_view
from drawdown.spec import load_project
from drawdown.workspace import Workspace

router = APIRouter()


@router.get("/quarantine/{dag_id}/{pipeline}", dependencies=[Depends(may_read_runs)])
def quarantine_page(
    request: Request, dag_id: str, pipeline: str, wanted: Annotated[RowFilter, Depends()]
) -> Response:
    """Return the newest rows that a pipeline of this DAG has set aside."""
    content: dict[str, Any] = {
        "title": f"Quarantine of {pipeline}",
        "dag_id": dag_id,
        "pipeline": pipeline,
        "wanted": wanted,
        "looked_at": LOOKED_AT,
        "view": None,
    }
    with Workspace.open(load_project()) as workspace:
        if pipeline not in pipelines_of(workspace, dag_id):
            content = {**content, "title": pipeline, "replayed": "", "is_own": False}
            return answer(request, "no_pipeline.html", content, status=404)
        try:
            content["view"] = _content(pipeline, quarantine_view(workspace, pipeline, wanted))
        except RefusedError as refusal:
            if refusal.id != "quarantine.none":
                raise
    return answer(request, "quarantine.html", content)


def _content(pipeline: str, view: QuarantineView) -> dict[str, Any]:
    return {
        "looked_at": len(view.found.rows),
        "of": view.found.of,
        "is_all": view.found.is_all,
        "reasons": view.reasons,
        "runs": view.runs,
        "taken": view.taken,
        "open": view.open,
        "rows": [_row(each) for each in view.shown],
        "body": {"logical_date": None, "conf": {PARAMETER: {"pipeline": pipeline, **view.choice.said}}},
        "replay": view.replay,
        "drop": view.drop,
    }


def _row(shown: ShownRow) -> dict[str, Any]:
    row = shown.row
    return {
        "state": row.state,
        "reasons": row.reasons,
        "source": row.source,
        "place": shown.place,
        "batch_id": row.batch_id,
        "run_id": row.run_id,
        "set_aside_at": row.set_aside_at,
        "event_time": row.event_time,
        "record": shown.record,
    }
