"""The frame of all pages: templates with all text escaped, the JSON twin of each, headers, and addresses.

A page is HTML without anything from elsewhere, so that it works inside Airflow's frame: styles and two small
scripts come from this web server, charts are SVG in the page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from drawdown.airflow.pages import charts, plots
from drawdown.airflow.pages.drawn import calendar as drawn_calendar
from drawdown.airflow.pages.drawn import graph as drawn_graph
from drawdown.values.text import in_utc

HERE = Path(__file__).parent
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self';"
        " img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def answer(request: Request, template: str, content: Mapping[str, Any], status: int = 200) -> Response:
    """Return a page, or the same content as JSON if the request asks for that (`?format=json`, `Accept`)."""
    if wants_json(request):
        text = json.loads(json.dumps(dict(content), default=_plain))
        return JSONResponse(text, status, headers=HEADERS)
    page = _templates().get_template(template).render(**content, url=Addresses(request))
    return HTMLResponse(page, status, headers=HEADERS)


def wants_json(request: Request) -> bool:
    """Whether the JSON twin of a page is asked for."""
    asked = request.query_params.get("format")
    return asked == "json" or (asked is None and "application/json" in request.headers.get("accept", ""))


class Addresses:
    """The addresses that pages link to, behind whatever prefix Airflow runs."""

    def __init__(self, request: Request) -> None:
        self._own = request.scope.get("root_path", "").rstrip("/")
        self._airflow = self._own.removesuffix("/drawdown")
        self._query = {k: v for k, v in request.query_params.items() if k != "format"}

    def page(self, *path: str, **query: str) -> str:
        """One of our pages."""
        return _joined(self._own, path, query)

    def airflow(self, *path: str, **query: str) -> str:
        """One of Airflow's pages; a link to it needs class="out": Airflow's frame lets nothing else out."""
        return _joined(self._airflow, path, query)

    def here(self, **query: str | int) -> str:
        """This page with other query parameters; an empty one is left out."""
        changed = {k: v for k, v in {**self._query, **query}.items() if v != ""}
        return f"?{urlencode(changed)}" if changed else "?"


def _joined(base: str, path: tuple[str, ...], query: Mapping[str, str]) -> str:
    address = "/".join((base, *(quote(part, safe="") for part in path)))
    return f"{address}?{urlencode(query)}" if query else address


@cache
def _templates() -> Environment:
    env = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "number": lambda value: "" if value is None else f"{value:,}",
        "utc": lambda moment: "" if moment is None else in_utc(moment),
        "lasting": lasting,
        "size": size,
        "coded": coded,
        "json": lambda value: json.dumps(value, ensure_ascii=False, default=_plain),
    }
    env.filters.update(filters)
    env.globals["charts"] = charts
    env.globals["plots"] = plots
    env.globals["drawn_calendar"] = drawn_calendar
    env.globals["drawn_graph"] = drawn_graph
    return env


def lasting(span: timedelta | float | None) -> str:
    """Return a time span in its greatest unit: 40 s, 12 min, 5 h, 3 d."""
    if span is None:
        return ""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    for unit, length in _UNITS:
        if abs(seconds) >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def coded(text: Any) -> Markup:
    """Return a text in which what stands between backticks is code."""
    parts = str(text).split("`")
    if len(parts) % 2 == 0:  # a backtick of its own
        return escape(str(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


def size(count: float | None) -> str:
    """Return bytes in their greatest unit, by thousands."""
    if count is None:
        return ""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1_000:
            return f"{count:.0f} {unit}"
        count /= 1_000
    return f"{count:.1f} TB"


def _plain(value: Any) -> Any:
    """For JSON: times in ISO, spans in seconds, records as objects."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    return str(value)
