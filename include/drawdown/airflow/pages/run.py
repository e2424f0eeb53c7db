"""The page of a DAG run, a tab of the run: what each try did to each pipeline, and why it ended so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from drawdown.airflow.held_requests import request_id
from drawdown.airflow.pages.access import may_read_runs
from drawdown.airflow.pages.frame import answer
from drawdown.airflow.pages.plots import PlottedSpan
from drawdown.airflow.run_records import runs_of_dag_run
from drawdown.metastore import Metastore
from drawdown.observe.pipeline.expectations import judgement_of
from drawdown.observe.run_view import RunView, run_view
from drawdown.spec import load_project
from drawdown.values.dag_ids import DECIDE
from drawdown.values.text import in_utc
from drawdown.workspace import Workspace

router = APIRouter()

DETAILED = 8
"""How many runs the page shows in detail when it is not asked for one pipeline: those to look at first."""
_COUNTS = ("malformed", "future", "quarantined", "fed")


@router.get(
    "/runs/{dag_id}/{dag_run_id:path}",
    dependencies=[Depends(may_read_runs)],
)
def run_page(request: Request, dag_id: str, dag_run_id: str, pipeline: str = "") -> Response:
    """Return the page; each try of a retried drain is a run."""
    with Workspace.open(load_project()) as workspace:
        runs = runs_of_dag_run(workspace.metastore, dag_id, dag_run_id)
        views = [run_view(workspace, run) for run in runs if pipeline in ("", run.pipeline)]
        waiting = {view.run.run_id: _waiting(workspace.metastore, view) for view in views}
    detailed = sorted(views, key=lambda view: view.is_fine)[: len(views) if pipeline else DETAILED]
    content = {
        "title": f"{dag_id} · {dag_run_id}",
        "dag_id": dag_id,
        "dag_run_id": dag_run_id,
        "pipeline": pipeline,
        "rows": [_row(view) for view in views],
        "details": [_details(view, waiting[view.run.run_id]) for view in views if view in detailed],
        "hidden": len(views) - len(detailed),
    }
    return answer(request, "run.html", content)


def _row(view: RunView) -> dict[str, Any]:
    run = view.run
    known = {
        name: getattr(run.counts, name) if run.counted else None for name in ("read", "late", "published")
    }
    return {
        "run_id": run.run_id,
        "pipeline": run.pipeline,
        "kind": run.kind,
        "attempt": view.attempt,
        "state": run.state,
        "outcome": view.outcome,
        "started_at": run.started_at,
        "seconds": view.seconds,
        **known,
        "aside": view.aside if run.counted else None,
        "watermark": run.watermark,
        "core_seconds": view.bill.core_us / 1e6 if view.bill is not None else None,
        "cost": {k: f"{float(v):.4f}" for k, v in view.bill.money.items()} if view.bill is not None else {},
    }


def _details(view: RunView, waiting: Sequence[dict[str, str]]) -> dict[str, Any]:
    run = view.run
    return {
        **_row(view),
        "stop_reason": run.stop_reason,
        "error": {key: str(value) for key, value in (run.error or {}).items()},
        "notices": run.notices,
        "balance": _balance(view),
        "counts": run.counts if run.counted else None,
        "phases": view.phases,
        "batches": view.batches,
        "hidden_batches": view.hidden,
        "timeline": _timeline(view),
        "length": view.seconds or 0.0,
        "verdicts": [_verdict(each) for each in view.judged],
        "waiting": waiting,
        "decisions": view.decisions,
        "log": {
            key: str(run.origin[key]) for key in ("dag_id", "dag_run_id", "task_id") if key in run.origin
        },
    }


def _balance(view: RunView) -> dict[str, Any] | None:
    """The sum that has to add up: read = malformed + future + quarantined + fed."""
    if not view.run.counted:
        return None
    counts = view.run.counts
    return {
        "read": counts.read,
        "parts": {name: getattr(counts, name) for name in _COUNTS},
        "adds_up": counts.balanced,
    }


def _timeline(view: RunView) -> list[PlottedSpan]:
    spans = []
    for batch in view.batches:
        if batch.started_at is None or batch.seconds is None:
            continue
        start = (batch.started_at - view.started_at).total_seconds()
        title = (
            f"batch {batch.batch_id}: {batch.counts.read:,} rows in {batch.seconds:.1f} s"
            f" from {in_utc(batch.started_at)} UTC, {batch.status}"
        )
        spans.append(
            PlottedSpan(f"batch {batch.batch_id}", title, max(start, 0.0), batch.seconds, batch.status)
        )
    return spans


def _verdict(each: Any) -> dict[str, Any]:
    verdict = each.verdict
    return {
        "outcome": verdict.outcome,
        "batches": verdict.batches,
        "at": verdict.created_at,
        "text": verdict.text,
        "results": [{**entry, "judgement": judgement_of(entry)} for entry in verdict.results],
        "data_docs": each.data_docs,
    }


def _waiting(metastore: Metastore, view: RunView) -> list[dict[str, str]]:
    """Return the slices that the audit of a run holds, each with the DAG run that asks about it."""
    run = view.run
    if run.verdict != "fail":
        return []
    return [
        {
            "what": f"{held.rows:,} rows ({held})",
            "dag_id": DECIDE,
            "dag_run_id": request_id(run.pipeline, held.key),
            "command": f"drawdown release {run.pipeline} --why ...",
            "discard": f"drawdown discard {run.pipeline} --why ...",
        }
        for held in metastore.held_slices(run.pipeline)
        if held.verdict.run_id == run.run_id
    ]
