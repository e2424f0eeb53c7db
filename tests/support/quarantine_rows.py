"""Rows in the quarantine of a recorded pipeline, without a run that has set them aside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from deltalake import write_deltalake

from drawdown.sinks.locations import quarantine_uri
from drawdown.spec import load_pipeline, load_project
from tests.support.fleet_records import FleetRecords

_AT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def set_rows_aside(
    fleet: FleetRecords, pipeline: str, batch: int, *rows: tuple[list[str], str | None, str | None]
) -> None:
    """A batch with these rows: reasons, the record as it came, and its columns as JSON."""
    table = pa.table(
        {
            "source": ["events"] * len(rows),
            "reasons": pa.array([reasons for reasons, _, _ in rows], pa.list_(pa.string())),
            "payload": pa.array([payload for _, payload, _ in rows], pa.string()),
            "parsed": pa.array([parsed for _, _, parsed in rows], pa.string()),
            "file": [f"/landing/{batch}.json"] * len(rows),
            "generation": pa.array([1] * len(rows), pa.int32()),
            "batch_id": pa.array([batch] * len(rows), pa.int64()),
            "run_id": [f"{pipeline}-{batch}"] * len(rows),
            "set_aside_at": [_AT + timedelta(minutes=batch)] * len(rows),
        }
    )
    project = load_project(fleet.root)
    write_deltalake(quarantine_uri(project, load_pipeline(project, pipeline)), table, mode="append")
