"""The Data Docs of a pipeline's slices, as the audits have written them, under the rights of its DAG."""

from __future__ import annotations

import re

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response

from drawdown.airflow.pages.access import may_read_runs
from drawdown.airflow.pages.frame import HEADERS, answer
from drawdown.observe.dag_pipelines import pipelines_of
from drawdown.quality.data_docs import KEPT, docs_folder
from drawdown.spec import load_project
from drawdown.workspace import Workspace

router = APIRouter()

_PAGE = re.compile(r"[A-Za-z0-9_.\-]+\.html")


@router.get(
    "/data-docs/{dag_id}/{pipeline}/{page}",
    dependencies=[Depends(may_read_runs)],
)
def data_docs(request: Request, dag_id: str, pipeline: str, page: str) -> Response:
    """Return one page, or say that it is no longer kept."""
    with Workspace.open(load_project()) as workspace:
        if _PAGE.fullmatch(page) and pipeline in pipelines_of(workspace, dag_id):
            try:
                found = workspace.storage.read_bytes(f"{docs_folder(pipeline)}/{page}")
                return HTMLResponse(found, headers=HEADERS)
            except FileNotFoundError:
                pass
    content = {"title": "Data Docs", "kept": KEPT, "pipeline": pipeline, "dag_id": dag_id}
    return answer(request, "no_data_docs.html", content, status=404)
