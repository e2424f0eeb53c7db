"""Three runs of a pipeline as a real one records them: batches, verdicts, progress, usage, generations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from drawdown.metastore.records import Batch, Counts, Lease, Run, Verdict
from tests.support.fleet_records import TTL, FleetRecords

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
NEWEST_EVENT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
WATERMARK = NEWEST_EVENT - timedelta(minutes=10)
COUNTS = Counts(read=100, malformed=4, quarantined=6, fed=90, staged=80, published=80, late=2)

FINGERPRINT = {
    "format": 1,
    "source_order": ["events", "events#carrier"],
    "sources.events": "json landing/events",
    "sources.events.options": {},
    "sources.events.schema": "at TIMESTAMP, id BIGINT",
    "sources.events.watermark": "at 10 minutes",
    "sink": f"delta {HOSTILE}",
    "sink.mode": "append",
    "sink.keys": ["id"],
    "sink.schema": "id bigint",
    "state.provider": "rocksdb",
    "state.partitions": 2,
    "state.kept": [
        {
            "operator": "inner join",
            "left_keys": ["id bigint"],
            "right_keys": ["id bigint"],
            "left": ["at timestamp"],
            "right": ["at timestamp"],
            "until": {"left": -600_000, "right": None},
        }
    ],
    "watermark_policy": "min",
}
USAGE = {
    "us": 20_000_000, "idle_us": 0, "cpu_us": 9_000_000, "cores": 2, "memory": 2**31, "peak": 2**30,
    "start_us": 2_000_000, "price": {"currency": "EUR", "core_hour": "0.05", "gb_hour": "0.01"},
}  # fmt: skip


def history(fleet: FleetRecords, name: str) -> list[Run]:
    """Three runs of generation 2, the last of them held, with an error and texts of an attacker."""
    fleet.pipeline(name)
    store = fleet.metastore
    with_generations(fleet, name)
    runs = []
    for number in range(3):
        run = store.start_run(Run(f"{name}-{number}", name, origin=_origin(name, number)))
        lease = store.acquire(name, "test", run.run_id, TTL)
        _batch(fleet, lease, number, run)
        _judge(fleet, lease, number)
        store.release(lease)
        failed = number == 2
        runs.append(
            store.finish_run(
                run.run_id,
                "failed" if failed else "succeeded",
                generation=2,
                batches=1,
                counts=COUNTS,
                watermark=WATERMARK,
                verdict="fail" if failed else "pass",
                stop_reason="drained",
                error={"id": "slice.held", "what": HOSTILE, "where": HOSTILE, "do": "decide"}
                if failed
                else None,
                notices=[{"id": "rows.late", "what": HOSTILE, "about": "events", "do": HOSTILE}],
                progress=[_progress(number, run)],
                usage=USAGE,
                phases={"open": 1_000_000, "query": 10_000_000, "audit": 3_000_000, "publish": 500_000},
            )
        )
    fleet.waits(name, files=10, bytes=1_000)
    fleet.waits(name, files=30, bytes=3_000)
    return runs


def with_generations(fleet: FleetRecords, name: str) -> None:
    """Generation 1 is retired; generation 2, in use, writes one more column."""
    lease = fleet.leased(name, "generations")
    first, second = FINGERPRINT, {**FINGERPRINT, "sink.schema": "id bigint, point struct<x:int,y:int>"}
    fleet.metastore.create_checkpoint(lease, 1, f"_drawdown/{name}/checkpoint-1", first)
    fleet.metastore.change_generations(lease, {1: {"state": "retired"}})
    fleet.metastore.create_checkpoint(lease, 2, f"_drawdown/{name}/checkpoint-2", second)
    fleet.metastore.release(lease)


def _origin(name: str, number: int) -> dict[str, Any]:
    return {
        "dag_id": name,
        "dag_run_id": f"scheduled__2026-01-31T0{number}:00:00+00:00",
        "task_id": "drain",
        "try_number": 1,
    }


def _batch(fleet: FleetRecords, lease: Lease, number: int, run: Run) -> None:
    before = [{"logOffset": number - 1}, None] if number else []
    of_events = {
        "read": 100, "malformed": 4, "future": 0, "quarantined": 6, "fed": 90, "late": 2,
        "rules": {HOSTILE: 6}, "files": 5, "bytes": 5_000, "names": ["landing/1.json", HOSTILE],
        "greatest": NEWEST_EVENT.isoformat(),
    }  # fmt: skip
    batch = Batch(
        run.pipeline, 2, number, run.run_id, lease.epoch,
        offsets_from=before, offsets_to=[{"logOffset": number}, {"logOffset": 0}],
        watermark=WATERMARK, counts=COUNTS, by_source={"events": of_events},
    )  # fmt: skip
    fleet.metastore.note_batch(lease, batch, [], {})
    fleet.metastore.mark_committed(lease, 2, number)


def _judge(fleet: FleetRecords, lease: Lease, number: int) -> None:
    failed = number == 2
    enough = {
        "name": f"enough {HOSTILE}", "type": "expect_table_row_count_to_be_between",
        "kwargs": {"min_value": 1},
        "severity": "fail", "success": not failed, "observed": 80, "unexpected_count": None,
        "unexpected_percent": None, "samples": [], "exception": None,
    }  # fmt: skip
    gaps = {
        "name": "no gaps", "type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"},
        "severity": "warn", "success": False, "observed": None, "unexpected_count": 3,
        "unexpected_percent": 3.75, "samples": [{"id": HOSTILE}], "exception": None,
    }  # fmt: skip
    results = [enough, *([gaps] if failed else [])]
    outcome = "fail" if failed else "pass"
    verdict = Verdict(lease.pipeline, 2, lease.run_id, number, number, outcome, results, HOSTILE)  # type: ignore[arg-type]
    fleet.metastore.record_verdict(lease, verdict)
    if not failed:
        fleet.metastore.mark_published(lease, 2, [number])


def _progress(number: int, run: Run) -> dict[str, Any]:
    assert run.started_at is not None
    operator = {
        "operator": "join", "rows": 1_200, "counted": True, "updated": 1, "removed": 0, "late_groups": 0,
        "memory_bytes": 5_000_000, "metrics": {},
    }  # fmt: skip
    return {
        "batch_id": number,
        "timestamp": run.started_at.isoformat(),
        "rows": 100,
        "watermark": WATERMARK.isoformat(),
        "duration_ms": {"triggerExecution": 1_500, "addBatch": 1_200},
        "sources": {"events": 100},
        "operators": [operator],
        "status": "",
    }
