"""A pipeline with `replay:`, a day an interval, whose drains and replays a test records."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from drawdown.metastore.records import Batch, Counts, Run, StagedFile, Verdict
from tests.support.fleet_records import FleetRecords

SPEC = """
sources:
  events:
    format: json
    path: READS
    schema: "at TIMESTAMP, id BIGINT"
    watermark: {column: at, delay: 1 hour}
transform: transform.sql
sink: {format: delta, path: tables/NAME, schema: out.ddl, time_column: at}
replay: {interval: 1 day, lookahead: 1 hour}
"""
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def day(number: int) -> datetime:
    """A day of January 2026."""
    return FIRST + (number - 1) * DAY


def replayable(fleet: FleetRecords, name: str, reads: str = "landing", more: str = "") -> None:
    folder = fleet.root / "include/pipelines" / name
    folder.mkdir()
    (folder / "pipeline.yaml").write_text(SPEC.replace("NAME", name).replace("READS", reads) + more)
    (folder / "transform.sql").write_text("SELECT at, id FROM events")
    (folder / "out.ddl").write_text("at TIMESTAMP, id BIGINT")


def drained(fleet: FleetRecords, name: str, *spans: tuple[datetime, datetime], watermark: datetime) -> None:
    """A batch with a file for each of these event times, published."""
    run = fleet.ran(name)
    lease = fleet.leased(name, "0")
    fleet.metastore.create_checkpoint(lease, 1, f"_drawdown/{name}/checkpoint-1", {})
    files = [
        StagedFile("output", f"{number}.parquet", 1, 1, {"stats": json.dumps(_stats(*span))})
        for number, span in enumerate(spans)
    ]
    counts = Counts(read=9, fed=9, staged=9)
    batch = Batch(name, 1, 0, run.run_id, lease.epoch, watermark=watermark, counts=counts)
    fleet.metastore.note_batch(lease, batch, files, {})
    fleet.metastore.mark_committed(lease, 1, 0)
    fleet.metastore.record_verdict(lease, Verdict(name, 1, run.run_id, 0, 0, "pass"))
    fleet.metastore.mark_published(lease, 1, [0])
    fleet.metastore.release(lease)


def _stats(start: datetime, end: datetime) -> dict[str, Any]:
    least, most = (each.isoformat().replace("+00:00", "Z") for each in (start, end))
    return {"numRecords": 1, "minValues": {"at": least}, "maxValues": {"at": most}, "nullCount": {"at": 0}}


def replayed(
    fleet: FleetRecords, name: str, start: datetime, end: datetime, *readers: str, state: Any = "succeeded"
) -> None:
    number = len(fleet.metastore.runs(name, limit=1_000))
    origin = {"interval": [start.isoformat(), end.isoformat()]}
    run = fleet.metastore.start_run(Run(f"{name}-r{number}", name, kind="replay", origin=origin))
    notices = [{"id": "replay.downstream", "what": "w", "about": each, "do": "d"} for each in readers]
    fleet.metastore.finish_run(run.run_id, state, counts=Counts(published=5), notices=notices)
