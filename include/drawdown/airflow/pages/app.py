"""The pages in Airflow's web server: one FastAPI application below /drawdown."""

from __future__ import annotations

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
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
from drawdown.airflow.pages.parameters import WRONG, require_sound, wrong
from drawdown.errors import DrawdownError

app = FastAPI(
    title="Drawdown",
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
    dependencies=[Depends(require_sound)],
)
app.mount("/static", StaticFiles(directory=HERE / "static"))
for room in (fleet, pipeline, run, data_docs, metrics, decisions, quarantine, calendar, graph):
    app.include_router(room.router)


@app.exception_handler(DrawdownError)
def unavailable(request: Request, error: DrawdownError) -> Response:
    """Say what is wrong, for example that the metastore is away: Airflow itself stays up."""
    content = {"title": "Drawdown cannot show this page", "error": error.as_dict()}
    return answer(request, "unavailable.html", content, status=400 if error.id == WRONG else 503)


@app.exception_handler(RequestValidationError)
def not_understood(request: Request, error: RequestValidationError) -> Response:
    """Say which part of the address cannot be read, like any other error."""
    first = error.errors()[0]
    return unavailable(request, wrong(str(first["loc"][-1]), f"cannot be read: {first['msg']}"))
