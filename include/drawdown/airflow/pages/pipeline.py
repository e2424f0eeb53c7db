"""The page of a pipeline, a tab of its DAG: its last runs as charts, its query, its spec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from drawdown.airflow.pages.access import may_read_runs
from drawdown.airflow.pages.frame import answer
from drawdown.airflow.pages.parameters import Count
from drawdown.airflow.pages.plots import Chart, Series
from drawdown.observe.dag_pipelines import pipelines_of
from drawdown.observe.next_steps import next_step
from drawdown.observe.pipeline.points import RunPoint
from drawdown.observe.pipeline.view import CHOICES, PipelineView, pipeline_view
from drawdown.spec import load_project
from drawdown.values.dag_ids import OWN, REPLAY_SUFFIX
from drawdown.values.text import in_utc
from drawdown.workspace import Workspace

router = APIRouter()

_PHASES = ("start", "open", "query", "audit", "publish")


@router.get("/dags/{dag_id}", dependencies=[Depends(may_read_runs)])
def pipeline_page(request: Request, dag_id: str, pipeline: str = "", runs: Count = CHOICES[0]) -> Response:
    """Return the page of one pipeline of a DAG: of a group the one that is asked for, or the first."""
    with Workspace.open(load_project()) as workspace:
        names = pipelines_of(workspace, dag_id)
        if not names or (pipeline and pipeline not in names):
            return answer(
                request, "no_pipeline.html", _no_pipeline(dag_id, pipeline), status=404 if pipeline else 200
            )
        view = pipeline_view(workspace, pipeline or names[0], runs if runs in CHOICES else CHOICES[0])
    return answer(
        request, "pipeline.html", {**_content(view), "dag_id": dag_id, "names": names, "runs": runs}
    )


def _no_pipeline(dag_id: str, pipeline: str) -> dict[str, Any]:
    replayed = dag_id.removesuffix(REPLAY_SUFFIX) if dag_id.endswith(REPLAY_SUFFIX) else ""
    return {
        "title": pipeline or dag_id,
        "dag_id": dag_id,
        "pipeline": pipeline,
        "replayed": replayed,
        "is_own": dag_id in OWN,
    }


def _content(view: PipelineView) -> dict[str, Any]:
    seen, step = view.seen, next_step(view.seen) if view.seen is not None else None
    spec = view.written.spec
    return {
        "title": view.pipeline,
        "pipeline": view.pipeline,
        "is_replayable": spec is not None and spec.replay is not None,
        "description": spec.description if spec is not None else "",
        "state": seen.finding.state if seen is not None else None,
        "why": seen.finding.why if seen is not None else "",
        "step": step,
        "last": seen.figures.last if seen is not None else None,
        "recorded_at": seen.recorded_at if seen is not None else None,
        "choices": CHOICES,
        "figures": [chart for chart in _charts(view) if not chart.is_empty],
        "backlogs": [_backlog(each) for each in view.backlogs],
        "points": view.points,
        "expectations": [_expectation(row) for row in view.expectations],
        "problem": (view.newest.error if view.newest is not None else None),
        "notices": view.newest.notices if view.newest is not None else [],
        "newest": view.points[-1] if view.points else None,
        "query": view.query,
        "schemas": view.schemas,
        "columns": view.columns,
        "files": view.written.files,
        "unreadable": view.written.problem,
    }


def _backlog(each: Any) -> dict[str, Any]:
    at, waiting = each.seen[-1]
    return {
        "source": each.source,
        "unit": each.unit,
        "waiting": waiting,
        "at": at,
        "per_second": each.per_second,
        "measured": each.measured,
        "seconds_to_empty": each.seconds_to_empty,
    }


def _expectation(row: Any) -> dict[str, Any]:
    return {
        "name": row.name,
        "severity": row.severity,
        "judged": row.times_judged,
        "failed": row.failed,
        "bars": [
            (each.outcome, f"{_said(each.outcome)}, {each.batches}, {in_utc(each.at) if each.at else ''}")
            for each in row.judged
        ],
        "newest": row.newest,
    }


def _said(outcome: str) -> str:
    return "not judged" if outcome == "empty" else outcome


def _charts(view: PipelineView) -> Iterator[Chart]:
    yield from _of_rows(view.points)
    for each in view.backlogs:
        yield Chart(
            f"Backlog of {each.source}", "lines", "", [at for at, _ in each.seen],
            [Series(each.unit, [size for _, size in each.seen])], note="whenever a preflight or a run looked",
        )  # fmt: skip
    yield from _of_times(view.points)
    yield from _of_work(view.points)


def _of_rows(points: Sequence[RunPoint]) -> Iterator[Chart]:
    at = [point.started_at for point in points]
    counted = ("fed", "quarantined", "malformed", "future")
    names = {"future": "too far in the future"}
    series = [Series(names.get(name, name), [_count(point, name) for point in points]) for name in counted]
    published = Series("published", [_count(point, "published") for point in points])
    yield Chart(
        "Rows read, by what became of them", "bars", "rows", at, series, published,
        note="a bar is what a run read; the mark is what it published",
    )  # fmt: skip
    late = Series("late rows", [_count(point, "late") for point in points])
    groups = Series("late groups", [_count(point, "late_groups") for point in points])
    yield Chart(
        "Late rows", "bars", "rows", at, [late], groups,
        note="behind the watermark; the mark is the groups that Spark dropped for it",
    )  # fmt: skip


def _of_times(points: Sequence[RunPoint]) -> Iterator[Chart]:
    """Two charts: of rows from long ago the one is days where the other is minutes."""
    known = [point for point in points if point.watermark is not None]
    at = [point.ended_at or point.started_at for point in known]
    for behind, newest in (("the newest event", True), ("the end of the run", False)):
        values = [_behind(point, newest=newest) for point in known]
        yield Chart(f"Watermark behind {behind}", "lines", "seconds", at, [Series("behind", values)])


def _of_work(points: Sequence[RunPoint]) -> Iterator[Chart]:
    at = [point.started_at for point in points]
    yield Chart(
        "Seconds by phase", "bars", "seconds", at,
        [Series(phase, [point.phases.get(phase) for point in points]) for phase in _PHASES],
        note="start: until Spark was up, once for all pipelines of an application",
    )  # fmt: skip
    yield Chart(
        "Rows in state", "lines", "rows", at, [Series("rows", [point.state_rows for point in points])]
    )
    yield Chart(
        "Memory of the state store", "lines", "bytes", at,
        [Series("bytes", [point.state_bytes for point in points])],
    )  # fmt: skip
    for currency in sorted({each for point in points for each in point.cost}):
        costs = [point.cost.get(currency) for point in points]
        yield Chart(f"Cost of each run, {currency}", "bars", "money", at, [Series("cost", costs)])


def _count(point: RunPoint, name: str) -> int | None:
    return None if point.counts is None else int(getattr(point.counts, name))


def _behind(point: RunPoint, *, newest: bool) -> float | None:
    against = point.newest_event if newest else point.ended_at
    if against is None or point.watermark is None:
        return None
    return max(0.0, (against - point.watermark).total_seconds())
