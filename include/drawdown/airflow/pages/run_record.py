"""The page `Run record`: what one DAG run did to each pipeline, in Airflow's own web server.

It needs read access to the DAG, as Airflow's own pages of the run do. All text is escaped:
descriptions, errors and offsets come from specs and data.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag
from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse

from drawdown.airflow.held_requests import where_to_decide
from drawdown.airflow.run_records import runs_of_dag_run
from drawdown.cost.bill import bill_of
from drawdown.held.decide import decisions_on
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run
from drawdown.spec import load_project
from drawdown.values.text import in_utc

_HEAD = (
    "pipeline", "state", "read", "malformed", "future", "quarantined", "late", "published",
    "watermark (UTC)", "verdict", "seconds", "core-seconds",
)  # fmt: skip

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 14px system-ui, sans-serif; margin: 2rem; }}
table {{ border-collapse: collapse; }}
th, td {{ padding: .3rem .7rem; border-bottom: 1px solid #ccc; text-align: right; }}
th:first-child, td:first-child {{ text-align: left; }}
pre {{ background: #f4f4f4; padding: .7rem; white-space: pre-wrap; }}
</style>
<h1>{title}</h1>
{body}
</html>
"""

router = APIRouter()


@router.get(
    "/runs/{dag_id}/{dag_run_id:path}",
    dependencies=[Depends(requires_access_dag("GET", DagAccessEntity.RUN))],
    response_class=HTMLResponse,
)
def run_records(dag_id: str, dag_run_id: str) -> str:
    """Return the page, with one row per run; each try of a retried drain is a run."""
    with Metastore.open(load_project().metastore_url) as metastore:
        runs = runs_of_dag_run(metastore, dag_id, dag_run_id)
        details = [_details(metastore, run) for run in runs]
    title = escape(f"{dag_id} · {dag_run_id}")
    return _PAGE.format(title=title, body=_table(runs) + "".join(details))


def _table(runs: Iterable[Run]) -> str:
    rows = [_row(_cells(run), "td") for run in runs]
    if not rows:
        return "<p>No pipeline was drained: nothing was new, or the drain has not begun.</p>"
    return f"<table>{_row(_HEAD, 'th')}{''.join(rows)}</table>"


def _cells(run: Run) -> list[str]:
    counts = run.counts
    seconds = (run.ended_at - run.started_at).total_seconds() if run.ended_at and run.started_at else None
    numbers = (
        counts.read, counts.malformed, counts.future, counts.quarantined, counts.late, counts.published
    )  # fmt: skip
    return [
        run.pipeline,
        run.state,
        *(f"{number:,}" if run.counted else "unknown" for number in numbers),
        in_utc(run.watermark) if run.watermark else "",
        run.verdict or "",
        f"{seconds:.1f}" if seconds is not None else "",
        f"{bill_of(run.usage).core_us / 1e6:.1f}" if run.usage else "",
    ]


def _details(metastore: Metastore, run: Run) -> str:
    error = "\n".join(f"{key}: {value}" for key, value in (run.error or {}).items() if value)
    notices = "\n".join(f"{notice['id']}: {notice['what']}\n  do: {notice['do']}" for notice in run.notices)
    verdict = metastore.verdict_of(run)
    # The error of a failed audit contains the verdict.
    judged = verdict.text if verdict is not None and verdict.text not in error else ""
    waiting = where_to_decide(metastore, run.pipeline, run.run_id)
    texts = [text for text in (error, judged, *waiting, *decisions_on(metastore, run), notices) if text]
    return "".join(f"<h2>{escape(run.pipeline)}</h2><pre>{escape(text)}</pre>" for text in texts)


def _row(cells: Iterable[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
