"""A history of thirty hourly runs, for the pictures of the documentation and to look at."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlalchemy import update

from drawdown.metastore.records import Batch, Counts, Run, Verdict
from drawdown.metastore.tables import backlogs, runs, verdicts
from tests.support.fleet_records import TTL, FleetRecords
from tests.support.pipeline_history import FINGERPRINT, NEWEST_EVENT, USAGE
from tests.support.quarantine_rows import set_rows_aside

RUNS = 30


def dag_run(number: int) -> str:
    """The id of the DAG run of a run."""
    return f"scheduled__2026-01-{30 + number // 24}T{number % 24:02d}:05:00+00:00"


NEWEST_RUN = dag_run(RUNS - 1)
_SPEC = """
description: Orders of the shop, with the payments that belong to them
schedule: "5 * * * *"
freshness: 2 hours
sources:
  events:
    format: text
    path: landing/orders
transform: transform.sql
sink: {format: delta, path: tables/orders, schema: out.ddl}
"""


def pictured_history(fleet: FleetRecords, name: str) -> None:
    """Record the runs; the newest of them is held by its audit."""
    fleet.pipeline(name)
    (fleet.root / "include/pipelines" / name / "pipeline.yaml").write_text(_SPEC)
    (fleet.root / "include/pipelines" / name / "transform.sql").write_text("SELECT value FROM events")
    store, lease = fleet.metastore, fleet.leased(name, "first")
    store.create_checkpoint(lease, 1, f"_drawdown/{name}/checkpoint-1", _fingerprint())
    store.release(lease)
    for number in range(RUNS):
        _run(fleet, name, number)
    _spread(fleet, name)
    _quarantine(fleet, name)


def _quarantine(fleet: FleetRecords, name: str) -> None:
    """Rows of the newest runs that broke a rule, and records that no parser could read."""
    (fleet.root / "include/pipelines" / name / "quality.yaml").write_text(
        "rules: [{name: negative, check: amount >= 0, on_fail: quarantine}]\n"
    )
    for number, amounts in ((26, (-4, -12)), (28, (-9,)), (29, (-35,))):
        rows = [(["negative"], None, json.dumps({"id": n, "amount": n})) for n in amounts]
        broken = (["malformed"], '{"id": 4711, "amount": "12,50', None)
        set_rows_aside(fleet, name, number * 3, *rows, *([broken] if number != 26 else []))
    set_rows_aside(fleet, name, 88, (["future"], None, json.dumps({"id": 9, "amount": 80})))


def _fingerprint() -> dict[str, Any]:
    return {
        **FINGERPRINT,
        "source_order": ["events"],
        "sink": "delta tables/orders",
        "sink.schema": "id bigint, at timestamp, amount decimal(10,2)",
    }


def _run(fleet: FleetRecords, name: str, number: int) -> None:
    store, held = fleet.metastore, number == RUNS - 1
    origin = {
        "dag_id": name,
        "dag_run_id": dag_run(number),
        "task_id": "drain",
        "try_number": 1,
    }
    run = store.start_run(Run(f"{name}-{number}", name, origin=origin))
    assert run.started_at is not None
    lease = store.acquire(name, "test", run.run_id, TTL)
    parts = [_part(number, 3, part) for part in range(3)]
    for part, counts in enumerate(parts):
        store.note_batch(lease, _batch(run, lease.epoch, number * 3 + part, counts), [], {})
    store.mark_committed(lease, 1, number * 3 + 2)
    whole = sum(parts, Counts())
    outcome: Any = "fail" if held else "warn" if number == 11 else "pass"
    verdict = Verdict(name, 1, run.run_id, number * 3, number * 3 + 2, outcome, _results(number, whole))
    store.record_verdict(lease, verdict)
    if not held:
        store.mark_published(lease, 1, [number * 3 + part for part in range(3)])
    store.release(lease)
    query = 6_000_000 + whole.read * 90
    error = {
        "id": "audit.fail",
        "what": "fail: 1 of 3 expectations failed",
        "where": f"pipeline {name}",
        "do": f"look at the rows, then `drawdown release {name} --why ...` or"
        f" `drawdown discard {name} --why ...`",
    }
    fleet.waits(name, files=round(6 + 5 * math.sin(number / 3)), bytes=2_000_000)
    store.finish_run(
        run.run_id,
        "failed" if held else "succeeded",
        generation=1,
        batches=3,
        counts=replace(whole, published=0 if held else whole.staged),
        watermark=NEWEST_EVENT - timedelta(minutes=10 + number % 7 * 3),
        verdict=outcome,
        stop_reason="drained",
        error=error if held else None,
        progress=[_progress(run, number, part, counts) for part, counts in enumerate(parts)],
        usage={**USAGE, "us": query + 6_000_000},
        phases={"open": 900_000, "query": query, "audit": 1_800_000, "publish": 400_000},
    )


def _counts(number: int) -> Counts:
    read = round(60_000 + 35_000 * math.sin(number / 4) + 4_000 * (number % 3))
    aside, bad = read // 40 + (9_000 if number == 11 else 0), read // 90
    fed = read - aside - bad
    return Counts(
        read=read,
        malformed=bad,
        quarantined=aside,
        fed=fed,
        staged=fed,
        late=number * 37 % 400,
    )


def _part(number: int, parts: int, part: int) -> Counts:
    whole = _counts(number)
    values = {
        name: getattr(whole, name) // parts for name in ("malformed", "quarantined", "fed", "staged", "late")
    }
    read = values["malformed"] + values["quarantined"] + values["fed"]
    return Counts(read=read, late_groups=part % 2, **values)


def _batch(run: Run, epoch: int, batch_id: int, counts: Counts) -> Batch:
    of_source = {
        "read": counts.read, "malformed": counts.malformed, "quarantined": counts.quarantined,
        "fed": counts.fed, "files": 4, "bytes": counts.read * 180,
        "names": [f"landing/orders/{batch_id:04}-{part}.json" for part in range(4)],
        "greatest": NEWEST_EVENT.isoformat(),
    }  # fmt: skip
    return Batch(
        run.pipeline, 1, batch_id, run.run_id, epoch,
        offsets_from=[{"logOffset": batch_id - 1}] if batch_id else [], offsets_to=[{"logOffset": batch_id}],
        watermark=NEWEST_EVENT - timedelta(minutes=10), counts=counts, by_source={"events": of_source},
    )  # fmt: skip


def _results(number: int, counts: Counts) -> list[dict[str, Any]]:
    held = number == RUNS - 1
    nothing = {"unexpected_count": None, "unexpected_percent": None, "samples": [], "exception": None}
    return [
        {
            "name": "amounts are positive", "type": "expect_column_values_to_be_between", "severity": "fail",
            "kwargs": {"column": "amount", "min_value": 0}, "success": not held, "observed": None,
            **nothing, "unexpected_count": 412 if held else 0, "unexpected_percent": 0.61 if held else 0.0,
            "samples": [{"id": 90321, "amount": "-12.50"}, {"id": 90377, "amount": "-3.00"}] if held else [],
        },
        {
            "name": "enough rows", "type": "expect_table_row_count_to_be_between", "severity": "warn",
            "kwargs": {"min_value": 1000}, "success": number != 11, "observed": counts.staged, **nothing,
        },
        {
            "name": "ids are there", "type": "expect_column_values_to_not_be_null", "severity": "fail",
            "kwargs": {"column": "id"}, "success": True, "observed": None, **nothing, "unexpected_count": 0,
        },
    ]  # fmt: skip


def _progress(run: Run, number: int, part: int, counts: Counts) -> dict[str, Any]:
    assert run.started_at is not None
    took = 1_900 + 400 * part
    operator = {
        "operator": "join", "rows": round(40_000 + 9_000 * math.sin(number / 2)), "counted": True,
        "updated": 1, "removed": 0, "late_groups": 0, "memory_bytes": 38_000_000 + number * 400_000,
        "metrics": {},
    }  # fmt: skip
    return {
        "batch_id": number * 3 + part,
        "timestamp": (run.started_at + timedelta(seconds=3 + 2.4 * part)).isoformat(),
        "rows": counts.read,
        "watermark": None,
        "duration_ms": {"triggerExecution": took},
        "sources": {"events": counts.read},
        "operators": [operator],
        "status": "",
    }


def _spread(fleet: FleetRecords, name: str) -> None:
    """Move what was recorded within seconds to an hour a run."""
    with fleet.metastore._writer.begin() as conn:
        for number in range(RUNS):
            run = fleet.metastore.run(f"{name}-{number}")
            assert run is not None
            assert run.started_at is not None
            back = timedelta(hours=RUNS - 1 - number)
            started = run.started_at - back
            entries = [
                {**each, "timestamp": (started + timedelta(seconds=3 + 2.4 * part)).isoformat()}
                for part, each in enumerate(run.progress)
            ]
            ends = started + timedelta(seconds=22)
            moved = {"started_at": started, "ended_at": ends, "progress": entries}
            conn.execute(update(runs).where(runs.c.run_id == run.run_id).values(moved))
            judged = update(verdicts).where(verdicts.c.run_id == run.run_id)
            conn.execute(judged.values(created_at=started + timedelta(seconds=20)))
        looks = fleet.metastore.figures.backlogs(name)
        for number, look in enumerate(looks):
            seen = look.seen_at - timedelta(hours=number)
            of_it = (backlogs.c.pipeline == name) & (backlogs.c.seen_at == look.seen_at)
            conn.execute(update(backlogs).where(of_it).values(seen_at=seen))
