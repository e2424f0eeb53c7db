"""Records the figures of pipelines: after preflights, runs, decisions and upkeep, and on a schedule.

A dozen reads and one write a pipeline, from records alone. Whatever goes wrong is one line in the log: a run
neither fails nor waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from drawdown.cost.bill import Bill, bill_of
from drawdown.errors import DrawdownError
from drawdown.fleet.lineage import Connections, connections
from drawdown.fleet.standing import Standing, standing
from drawdown.metastore.records import Counts, Run
from drawdown.metastore.state_rows import state_rows
from drawdown.observe.figures import (
    Bounds,
    Figures,
    Held,
    LastRun,
    RunBar,
    SourceBacklog,
    WaitingRebuild,
    look,
)
from drawdown.sources.findings import backlog_size
from drawdown.spec import Pipeline
from drawdown.spec.alerts import Alerts
from drawdown.workspace import Workspace

log = logging.getLogger(__name__)

_CONNECTED = {field.name for field in fields(Connections)}
BARS = 30
"""Runs that the fleet page shows of each pipeline."""
_DRAINED = "drained"
"""How the stop reason of a run begins that left nothing waiting (drain/drain.py)."""


def record(workspace: Workspace, pipelines: Iterable[str]) -> None:
    """Record the figures of these pipelines as they are now. Raises nothing."""
    for name in pipelines:
        with _harmlessly(f"figures of {name}"):
            _record(workspace, name)


@contextmanager
def recording(workspace: Workspace, *pipelines: str) -> Iterator[None]:
    """Record the figures of these pipelines after the block, whether it succeeds or fails."""
    try:
        yield
    finally:
        record(workspace, pipelines)


def record_backlog(workspace: Workspace, pipeline: str, backlog: Mapping[str, Mapping[str, Any]]) -> None:
    """Record what waits at a pipeline's sources, zeros included. Raises nothing."""
    with _harmlessly(f"backlog of {pipeline}"):
        workspace.metastore.figures.note_backlog(pipeline, {name: dict(of) for name, of in backlog.items()})


@contextmanager
def _harmlessly(what: str) -> Iterator[None]:
    """Whatever goes wrong with figures is one line in the log: no run fails because of them."""
    try:
        yield
    except DrawdownError as error:
        log.warning("not recorded: %s (%s)", what, error.what)
    except Exception as error:
        log.warning("not recorded: %s (%s)", what, type(error).__name__)
        log.debug("recording failed with", exc_info=True)


def _record(workspace: Workspace, name: str) -> None:
    before = next((seen.figures for seen in look(workspace.metastore, [name])), None)
    found = standing(workspace, name, BARS)
    figures = Figures(
        pipeline=name,
        lasting=found.lasting,
        published_at=found.published_at,
        since=found.since,
        promise=found.promise.total_seconds() if found.promise else None,
        last=_last(workspace, found),
        bars=tuple(_bar(run) for run in reversed(found.runs)),
        held=_held(found),
        rebuild=_rebuild(workspace, name),
        rows_per_second=_speed(found.runs),
        **_of_spec(workspace, found, before),
        **_event_times(workspace, found),
        **_backlog(workspace, found),
        **_sums(workspace, found, before),
    )
    workspace.metastore.figures.record(name, figures.model_dump(mode="json"))


def _of_spec(workspace: Workspace, found: Standing, before: Figures | None) -> dict[str, Any]:
    """What the spec says; of a spec that cannot be read, what it said before."""
    spec, name = found.spec, found.pipeline
    if not isinstance(spec, Pipeline):
        known = (
            before.model_dump(include={"dag_id", "group", "owner", "tags", "bounds", *_CONNECTED})
            if before is not None
            else {}
        )
        return {"dag_id": name, **known}
    return {
        "dag_id": spec.group or name,
        "group": spec.group,
        "owner": spec.owner,
        "tags": tuple(spec.tags),
        **asdict(connections(spec)),
        "bounds": _bounds(workspace.project.alerts_of(spec.alerts)),
    }


def _bounds(settings: Alerts) -> Bounds:
    after = settings.lagging_after
    return Bounds(
        lagging_after=None if after is None else after.delta.total_seconds(),
        retention_left=settings.retention_left.delta.total_seconds(),
        quarantined_rows=settings.quarantined_rows,
    )


def _last(workspace: Workspace, found: Standing) -> LastRun | None:
    if not found.runs:
        return None
    run = workspace.metastore.run(found.runs[0].run_id) or found.runs[0]
    assert run.started_at is not None
    entry = next((each for each in reversed(run.progress) if each.get("operators")), None)
    return LastRun(
        run_id=run.run_id,
        state=run.state,
        verdict=run.verdict,
        stop_reason=run.stop_reason,
        error_id=(run.error or {}).get("id"),
        started_at=run.started_at,
        ended_at=run.ended_at,
        read=run.counts.read if run.counted else None,
        published=run.counts.published if run.counted else None,
        set_aside=_set_aside(run.counts) if run.counted else None,
        late=run.counts.late if run.counted else None,
        origin={key: run.origin[key] for key in ("dag_id", "dag_run_id", "task_id") if key in run.origin},
        phases=phases_of(run),
        state_rows=None if entry is None else state_rows(entry["operators"]),
        state_bytes=None if entry is None else sum(each["memory_bytes"] for each in entry["operators"]),
    )


def phases_of(run: Run) -> dict[str, float]:
    """Return the seconds of a run by phase: ``start`` (Spark's, of its application), open, query, audit,
    publish; without those that were not measured."""
    start = (run.usage or {}).get("start_us")
    micros = {**({"start": start} if start is not None else {}), **(run.phases or {})}
    return {phase: us / 1e6 for phase, us in micros.items()}


def _bar(run: Run) -> RunBar:
    assert run.started_at is not None
    return RunBar(run_id=run.run_id, started_at=run.started_at, outcome=outcome_of(run))


def outcome_of(run: Run) -> str:
    """Return the verdict of a run, or its state when it was not judged."""
    judged = run.state in ("succeeded", "stopped") or run.verdict in ("fail", "error")
    return run.verdict if judged and run.verdict is not None else run.state


def _held(found: Standing) -> Held | None:
    if not found.held:
        return None
    first = found.held[0]
    rows = sum(term.held.rows for term in found.held)
    return Held(
        slices=len(found.held), rows=rows, batches=str(first.held), since=first.since, ends=first.ends
    )


def _rebuild(workspace: Workspace, name: str) -> WaitingRebuild | None:
    shadow = workspace.metastore.of_rebuilds.active_checkpoint(name)
    if shadow is None or shadow.rebuild.get("comparison") is None:
        return None
    return WaitingRebuild(generation=shadow.generation, since=shadow.created_at)


def _set_aside(counts: Counts) -> int:
    return counts.malformed + counts.future + counts.quarantined


def _speed(runs: Iterable[Run]) -> float | None:
    """Rows read for each second in which the queries of these runs ran."""
    timed = [(run.counts.read, run.phases["query"]) for run in runs if run.phases and "query" in run.phases]
    rows, micros = sum(read for read, _ in timed), sum(us for _, us in timed)
    return rows / (micros / 1e6) if rows and micros else None


def _event_times(workspace: Workspace, found: Standing) -> dict[str, datetime | None]:
    metastore = workspace.metastore
    newest = metastore.newest(found.pipeline)
    checkpoint = metastore.active_checkpoint(found.pipeline)
    shown = metastore.maxima(found.pipeline, checkpoint.generation) if checkpoint is not None else {}
    return {
        "watermark": newest.watermark if newest is not None else None,
        "newest_event": max(shown.values(), default=None),
    }


def _backlog(workspace: Workspace, found: Standing) -> dict[str, Any]:
    """The last look; after a run that left nothing, nothing waits as of its end."""
    seen = next(iter(workspace.metastore.figures.backlogs(found.pipeline, limit=1)), None)
    if seen is None:
        return {}
    last = found.runs[0] if found.runs else None
    waiting = tuple(each for name, of in seen.by_source.items() if (each := _waiting(name, of)) is not None)
    drained = last is not None and last.state == "succeeded" and (last.stop_reason or "").startswith(_DRAINED)
    if drained and last is not None and last.ended_at is not None and last.ended_at > seen.seen_at:
        none = tuple(SourceBacklog(source=each.source, amount=0, unit=each.unit) for each in waiting)
        return {"backlog": none, "backlog_at": last.ended_at}
    return {"backlog": waiting, "backlog_at": seen.seen_at}


def _waiting(source: str, found: Mapping[str, Any]) -> SourceBacklog | None:
    size = backlog_size(found)
    if size is None:
        return None
    known = {key: found[key] for key in ("bytes", "oldest", "headroom") if key in found}
    return SourceBacklog(source=source, amount=size[0], unit=size[1], **known)


def _sums(workspace: Workspace, found: Standing, before: Figures | None) -> dict[str, Any]:
    """Rows of all runs that ended since the last record are added; the month's cost is summed again."""
    figures = workspace.metastore.figures
    since, opened = (before.totals_until, before.totals_open) if before is not None else (None, ())
    counted_runs = figures.counts_since(found.pipeline, since, opened)
    totals = dict(before.totals) if before is not None else {}
    for name, rows in counted_runs.sums.items():
        totals[name] = totals.get(name, 0) + rows
    month = found.now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    bill = sum((bill_of(usage) for usage in figures.usages(found.pipeline, month)), Bill())
    return {
        "totals": totals,
        "totals_until": counted_runs.until,
        "totals_open": counted_runs.opened,
        "cost": {currency: f"{float(amount):.4f}" for currency, amount in sorted(bill.money.items())},
        "cost_since": month,
    }
