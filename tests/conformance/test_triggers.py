"""TRIG: triggers of drains."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.support.workspace import Workspace

DDL = {"event_ddl": "at TIMESTAMP, k STRING", "out_ddl": "hour TIMESTAMP, n BIGINT"}
COUNT = "SELECT window.start AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour')"
HOURLY = """
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


def rows_at(*times: str) -> list[dict[str, str]]:
    return [{"at": f"2024-01-01T{time}Z", "k": "a"} for time in times]


def hour(hour: int) -> datetime:
    return datetime(2024, 1, 1, hour, tzinfo=UTC)


@pytest.mark.conformance("TRIG-01")
def test_available_now_advances_the_watermark_from_batch_to_batch(workspace: Workspace) -> None:
    workspace.pipeline("hourly", HOURLY, transform_sql=COUNT, **DDL)
    waves = [("10:00:00", "10:30:00"), ("11:30:00",), ("12:30:00",), ("10:45:00", "14:00:00")]
    for i, times in enumerate(waves):
        workspace.land_json(f"landing/events/{i}.json", rows_at(*times), mtime=i + 1)
    first = workspace.run("hourly")
    marks = [entry["watermark"] for entry in first.progress]
    # Each batch runs with the watermark that the batches before it have shown; the last has no data.
    assert [mark and mark[11:16] for mark in marks] == [None, "10:20", "11:20", "12:20", "13:50"]
    assert (first.watermark, first.stop_reason) == (datetime(2024, 1, 1, 13, 50, tzinfo=UTC), "drained")
    # 10:45 came behind the batch that closed the window of 10: one batch of all would have counted it.
    assert first.counts.late == 1
    assert workspace.delta("tables/out") == [(hour(10), 2), (hour(11), 1), (hour(12), 1)]

    workspace.land_json("landing/events/9.json", rows_at("14:10:00", "15:30:00"), mtime=9)
    second = workspace.run("hourly")
    assert second.progress[0]["watermark"] == "2024-01-01T13:50:00.000Z"
    assert workspace.delta("tables/out")[3:] == [(hour(14), 2)]
