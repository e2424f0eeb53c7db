"""The last runs of a pipeline as points of its charts, oldest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from drawdown.cost.bill import bill_of
from drawdown.metastore.records import Batch, Counts, Run
from drawdown.metastore.state_rows import state_rows
from drawdown.observe.record import outcome_of, phases_of


@dataclass(frozen=True)
class RunPoint:
    """What one run adds to the charts; None where it is not known.

    Attributes:
        seconds: from start to end.
        newest_event: the greatest event time that its pipeline had read by its end.
        phases: seconds by phase, see `phases_of`.
        state_rows: kept in state after it; ``state_bytes`` the memory of the state store.
        cost: amount by currency.
        origin: the DAG run that started it, empty for a command.
    """

    run_id: str
    kind: str
    state: str
    outcome: str
    started_at: datetime
    ended_at: datetime | None
    seconds: float | None
    counts: Counts | None
    watermark: datetime | None
    newest_event: datetime | None
    phases: Mapping[str, float]
    state_rows: int | None
    state_bytes: int | None
    cost: Mapping[str, float]
    origin: Mapping[str, str]


def run_points(runs: Sequence[Run], batches: Sequence[Batch]) -> list[RunPoint]:
    """Return a point for each of these runs, given newest first, in the order of their starts.

    Args:
        batches: the newest batches, in any order: they know the newest event time of their runs.
    """
    newest = newest_events(batches)
    return [_point(run, newest.get(run.run_id)) for run in reversed(runs)]


def newest_events(batches: Sequence[Batch]) -> dict[str, datetime]:
    """Return by run the greatest event time that its batches know of."""
    found: dict[str, datetime] = {}
    for batch in batches:
        times = [
            datetime.fromisoformat(of["greatest"]) for of in batch.by_source.values() if "greatest" in of
        ]
        if times:
            found[batch.run_id] = max([*times, *([found[batch.run_id]] if batch.run_id in found else [])])
    return found


def _point(run: Run, newest_event: datetime | None) -> RunPoint:
    assert run.started_at is not None
    rows, size = state_of(run)
    return RunPoint(
        run_id=run.run_id,
        kind=run.kind,
        state=run.state,
        outcome=outcome_of(run),
        started_at=run.started_at,
        ended_at=run.ended_at,
        seconds=(run.ended_at - run.started_at).total_seconds() if run.ended_at else None,
        counts=run.counts if run.counted else None,
        watermark=run.watermark,
        newest_event=newest_event,
        phases=phases_of(run),
        state_rows=rows,
        state_bytes=size,
        cost={k: float(v) for k, v in bill_of(run.usage).money.items()} if run.usage else {},
        origin=dag_run_of(run.origin),
    )


def state_of(run: Run) -> tuple[int | None, int | None]:
    """Return the rows and bytes of state after a run's last batch; None for a query without state."""
    entry = next((each for each in reversed(run.progress) if each.get("operators")), None)
    if entry is None:
        return None, None
    return state_rows(entry["operators"]), sum(each["memory_bytes"] for each in entry["operators"])


def dag_run_of(origin: Mapping[str, Any]) -> dict[str, str]:
    """Return what identifies the task of an origin in Airflow; empty for a command."""
    return {key: str(origin[key]) for key in ("dag_id", "dag_run_id", "task_id") if key in origin}
