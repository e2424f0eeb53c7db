"""A rebuild that was computed and compared, as records have it."""

from __future__ import annotations

from typing import Any

from drawdown.metastore.records import Run
from tests.support.fleet_records import TTL, FleetRecords
from tests.support.pipeline_history import HOSTILE

COMPARISON: dict[str, Any] = {
    "compared": f"rows with at up to 2026-01-31 {HOSTILE}",
    "live_version": 4,
    "columns": {"added": ["net"], "removed": [], "retyped": []},
    "aggregates": {
        "live": {"amount": {"sum": 100, "min": 1}, "id": {"distinct": 5}},
        "shadow": {"amount": {"sum": 90, "min": 1}, "id": {"distinct": 5}},
    },
    "rows": {"live": 10, "shadow": 9},
    "only_live": 1,
    "only_shadow": 0,
    "changed": 3,
    "late": {"live": 2, "shadow": 0},
    "sample": [{"side": "live", "times": 1, "row": {"id": HOSTILE}}],
}


def rebuilt(fleet: FleetRecords, name: str) -> None:
    """A rebuild that Airflow has computed and compared."""
    store = fleet.metastore.of_rebuilds
    origin = {"dag_id": "drawdown__rebuild", "dag_run_id": f"manual__{name}"}
    store.start_run(Run(f"{name}-rebuild", name, kind="rebuild", origin=origin))
    lease = store.acquire(name, "elsewhere", f"{name}-rebuild", TTL)
    store.create_checkpoint(lease, 9, f"_drawdown/{name}/checkpoint-9", {})
    store.change_generations(lease, {9: {"rebuild": {"comparison": COMPARISON}}})
    store.release(lease)
    store.finish_run(f"{name}-rebuild", "succeeded")
