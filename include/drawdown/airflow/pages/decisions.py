"""The page of decisions: held slices and rebuilds that wait for a person. Airflow's own approval decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from drawdown.airflow.held_requests import request_id
from drawdown.airflow.pages.access import ReadableDags
from drawdown.airflow.pages.frame import answer
from drawdown.airflow.pages.parameters import PageNumber
from drawdown.metastore.records import Run
from drawdown.observe.decisions_view import (
    PAGE,
    Compared,
    ComparedRebuild,
    WaitingPipeline,
    WaitingSlice,
    decisions,
)
from drawdown.observe.figures import glance
from drawdown.spec import load_project
from drawdown.values.dag_ids import DECIDE, REBUILD
from drawdown.workspace import Workspace

router = APIRouter()


@router.get("/decisions")
def decisions_page(
    request: Request, dags: ReadableDags, pipeline: str = "", page: PageNumber = 1
) -> Response:
    """Return what waits for a decision, of the DAGs that the user may read."""
    with Workspace.open(load_project()) as workspace:
        found = decisions(workspace, glance(workspace.metastore), dags, pipeline, page)
    content = {
        "title": "Decisions",
        "waiting": [_waiting(each) for each in found.shown],
        "found": found.found,
        "pipeline": pipeline,
        "page": page,
        "pages": max(1, math.ceil(found.found / PAGE)),
    }
    return answer(request, "decisions.html", content)


def _waiting(each: WaitingPipeline) -> dict[str, Any]:
    return {
        "pipeline": each.seen.pipeline,
        "dag_id": each.seen.figures.dag_id,
        "recorded_at": each.seen.recorded_at,
        "slices": [_slice(slice_) for slice_ in each.slices],
        "more": each.more,
        "rebuild": None if each.rebuild is None else _rebuild(each.rebuild),
    }


def _slice(each: WaitingSlice) -> dict[str, Any]:
    term, held, pipeline = each.term, each.held, each.held.verdict.pipeline
    return {
        "batches": str(held),
        "rows": held.rows,
        "since": term.since,
        "waits": max(term.now - term.since, timedelta()),
        "ends": term.ends,
        "is_over": term.over,
        "is_near": term.near,
        "left": term.ends - term.now,
        "text": held.verdict.text,
        "failed": each.failed,
        "passed": each.passed,
        "numbers": _numbers(each.numbers),
        "data_docs": each.data_docs,
        "run": _place(each.run),
        "request": {"dag_id": DECIDE, "dag_run_id": request_id(pipeline, held.key), "task_id": "choose"},
        "commands": [f"drawdown {verb} {pipeline} --why ..." for verb in ("release", "discard")],
    }


def _rebuild(each: ComparedRebuild) -> dict[str, Any]:
    pipeline, place = each.shadow.pipeline, _place(each.run)
    return {
        "generation": each.shadow.generation,
        "since": each.shadow.created_at,
        "numbers": _numbers(each.numbers),
        "lines": each.lines,
        "sample": each.sample,
        "request": {**place, "task_id": "approve"} if place.get("dag_id") == REBUILD else {},
        "commands": [f"drawdown rebuild {verb} {pipeline} --why ..." for verb in ("approve", "discard")],
    }


def _numbers(numbers: Sequence[Compared]) -> list[dict[str, Any]]:
    return [
        {"name": each.name, "here": each.here, "before": each.before, "differs": each.differs}
        for each in numbers
    ]


def _place(run: Run | None) -> dict[str, str]:
    """The DAG run that made a run; {} for a run of a command."""
    origin = run.origin if run is not None else {}
    return {key: str(origin[key]) for key in ("dag_id", "dag_run_id") if "dag_run_id" in origin}
