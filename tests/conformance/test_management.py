"""MGMT: several queries in one application, progress, listeners and metrics."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.support.workspace import Workspace

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
COUNT = "SELECT window.start AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour')"


def _rows(*times: str) -> list[dict[str, str]]:
    return [{"at": f"2024-01-01T{time}Z", "k": "a"} for time in times]


@pytest.mark.conformance("MGMT-02")
def test_a_run_record_keeps_the_progress_of_its_last_batches(workspace: Workspace) -> None:
    ddl = {"event_ddl": "at TIMESTAMP, k STRING", "out_ddl": "hour TIMESTAMP, n BIGINT"}
    workspace.pipeline("hourly", HOURLY, transform_sql=COUNT, **ddl)
    workspace.land_json("landing/events/1.json", _rows("10:05:00", "10:15:00"), mtime=1)
    workspace.land_json("landing/events/2.json", _rows("12:00:00"), mtime=2)
    first = workspace.run("hourly")
    # Two files, a batch each, and one without data that writes what the second one closed.
    assert [entry["batch_id"] for entry in first.progress] == [0, 1, 2]
    assert [entry["rows"] for entry in first.progress] == [2, 1, 0]
    assert [entry["sources"] for entry in first.progress] == [{"events": 2}, {"events": 1}, {"events": 0}]
    marks = [entry["watermark"] for entry in first.progress]
    assert marks == [None, "2024-01-01T10:05:00.000Z", "2024-01-01T11:50:00.000Z"]
    for entry in first.progress:
        assert datetime.fromisoformat(entry["timestamp"]) <= datetime.now(UTC)
        assert entry["duration_ms"]["addBatch"] <= entry["duration_ms"]["triggerExecution"]
        assert entry["status"]
    [operator] = first.progress[-1]["operators"]
    assert operator["operator"] == "stateStoreSave"
    assert (operator["removed"], operator["late_groups"]) == (1, 0)
    assert workspace.delta("tables/out") == [(datetime(2024, 1, 1, 10, tzinfo=UTC), 2)]

    # The same two lines are late for good: one group, as Spark counts it.
    workspace.land_json("landing/events/3.json", _rows("10:20:00", "10:25:00"), mtime=3)
    second = workspace.run("hourly")
    assert [entry["batch_id"] for entry in second.progress] == [3]
    assert second.progress[0]["operators"][0]["late_groups"] == second.counts.late_groups == 1
    assert second.counts.late == 2
    with workspace.metastore() as metastore:
        kept = [(run.run_id, run.progress) for run in metastore.runs("hourly")]
    assert kept == [(second.run_id, second.progress), (first.run_id, first.progress)]
    assert len(workspace.delta("tables/out")) == 1
