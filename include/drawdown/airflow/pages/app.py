"""The pages in Airflow's web server: one FastAPI application below /drawdown."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles

from drawdown.airflow.pages import (
    calendar,
    data_docs,
    decisions,
    fleet,
    graph,
    metrics,
    pipeline,
    quarantine,
    run,
)
from drawdown.airflow.pages.frame import HERE, answer
from drawdown.errors import DrawdownError

app = FastAPI(title="Drawdown", docs_url=None, redoc_url=None, openapi_url=None)
app.mount("/static", StaticFiles(directory=HERE / "static"))
for room in (fleet, pipeline, run, data_docs, metrics, decisions, quarantine, calendar, graph):
    app.include_router(room.router)


@app.exception_handler(DrawdownError)
def unavailable(request: Request, error: DrawdownError) -> Response:
    """Say what is wrong, for example that the metastore is away: Airflow itself stays up."""
    content = {"title": "Drawdown cannot show this page", "error": error.as_dict()}
    return answer(request, "unavailable.html", content, status=503)
