"""Rows with event times of one day, written short: what tests of windows and watermarks land and read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from drawdown.metastore.records import Run
from tests.support.sandbox import Sandbox

# One watermarked source `events`, one Delta table.
EVENTS = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, watermark: {column: at, delay: 10 minutes}}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
state: {partitions: 2}
"""
A_FILE_A_BATCH = """
sources:
  events:
    format: json
    path: landing/events
    schema: event.ddl
    options: {maxFilesPerTrigger: 1}
    watermark: {column: at, delay: 10 minutes}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
state: {partitions: 2}
"""
HOURLY = "SELECT window.start AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour')"
HOURLY_FILES = {
    "event_ddl": "at TIMESTAMP, k STRING",
    "out_ddl": "hour TIMESTAMP, n BIGINT",
    "transform_sql": HOURLY,
}


def at(time: str) -> datetime:
    """The moment "10:05" or "10:05:30.5" of the day, UTC."""
    return datetime.fromisoformat(f"2024-01-01T{time}").replace(tzinfo=UTC)


def rows_at(*times: str) -> list[dict[str, str]]:
    """Rows of "10:05:00", for files with a time of their own."""
    return [{"at": f"2024-01-01T{time}Z", "k": "a"} for time in times]


def land(sandbox: Sandbox, source: str, name: str, *rows: str) -> None:
    """A file of rows, each written "10:05 a": its event time `at` and its key `k`."""
    split = [row.split() for row in rows]
    sandbox.land_json(
        f"landing/{source}/{name}.json",
        [{"at": at(time).isoformat(), "k": key[0] if key else "a"} for time, *key in split],
    )


def land_and_run(sandbox: Sandbox, pipeline: str, name: str, *rows: str) -> Run:
    """A file of the source `events`, and a run of the pipeline."""
    land(sandbox, "events", name, *rows)
    return sandbox.run(pipeline)


def table(sandbox: Sandbox, path: str = "tables/out") -> list[tuple[Any, ...]]:
    """A table's rows with times as "10:05": whole minutes, or what they are."""
    return [tuple(_short(value) for value in row) for row in sandbox.delta(path)]


def _short(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return f"{value:%H:%M}" if value == value.replace(second=0, microsecond=0) else f"{value:%H:%M:%S.%f}"
