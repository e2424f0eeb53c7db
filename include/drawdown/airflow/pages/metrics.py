"""The address that Prometheus scrapes: all pipelines, for whoever has its token; no login of Airflow."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import APIRouter, Header
from fastapi.responses import PlainTextResponse, Response
from pydantic import SecretStr

from drawdown.airflow.logins import password_of
from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore
from drawdown.observe.figures import look
from drawdown.spec import Project, load_project

router = APIRouter()

_OFF = """The metrics are switched off: they need a token.
Write `metrics: {token: "${DRAWDOWN_METRICS_TOKEN:-}"}` into include/project.yaml and set the variable for
Airflow's API server, or name an Airflow connection with it as password: `metrics: {connection: ID}`.
"""
_REFUSED = """This address needs the token of `metrics:` in include/project.yaml.
Send it as a header: Authorization: Bearer TOKEN
"""


@router.get("/metrics")
def metrics(authorization: Annotated[str, Header()] = "") -> Response:
    """Return the metrics of all pipelines; to a wrong token nothing about the project."""
    try:
        project = load_project()
        token = _token(project)
    except DrawdownError as error:
        return _said(f"{error.id}: the token cannot be read; `drawdown validate` says why\n", 503)
    if token is None:
        return _said(_OFF, 404)
    if not _is_right(authorization, token):
        return _said(_REFUSED, 401, {"WWW-Authenticate": 'Bearer realm="drawdown"'})
    # Without a token no page needs it: the library is imported when it is used first.
    from drawdown.observe.metrics import CONTENT_TYPE, clusters_by_state, metrics_text

    try:
        with Metastore.open(project.metastore_url) as metastore:
            seen, clusters = look(metastore), clusters_by_state(metastore)
    except DrawdownError as error:
        return _said(f"{error}\n", 503)
    return Response(
        metrics_text(seen, clusters), headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"}
    )


def _token(project: Project) -> SecretStr | None:
    access = project.metrics
    return password_of("metrics", access.connection) if access.connection else access.token


def _is_right(authorization: str, token: SecretStr) -> bool:
    scheme, _, given = authorization.partition(" ")
    # In constant time, so that answers do not tell how much of a guess was right.
    same = hmac.compare_digest(given.strip().encode(), token.get_secret_value().encode())
    return same and scheme.lower() == "bearer"


def _said(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(text, status, {**(headers or {}), "Cache-Control": "no-store"})
