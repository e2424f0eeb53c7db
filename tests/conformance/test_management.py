"""MGMT: several queries in one application, progress, listeners and metrics."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from drawdown.errors import TransformError
from tests.support.refusals import refused
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


LISTENER = """
import json, os
from pyspark.sql.streaming.listener import StreamingQueryListener

class Listener(StreamingQueryListener):
    def note(self, *what):
        with open(os.path.join(os.path.dirname(__file__), "heard.jsonl"), "a") as heard:
            heard.write(json.dumps(what) + "\\n")

    def onQueryStarted(self, event):
        self.note("started", event.name)

    def onQueryProgress(self, event):
        self.note("progress", event.progress.name, event.progress.batchId, event.progress.numInputRows)

    def onQueryTerminated(self, event):
        self.note("terminated", event.exception)
        raise ValueError("of the listener's own")
"""


@pytest.mark.conformance("MGMT-03")
def test_a_listener_hears_its_own_query_to_the_end_and_cannot_fail_it(workspace: Workspace) -> None:
    ddl = {"event_ddl": "at TIMESTAMP, k STRING", "out_ddl": "hour TIMESTAMP, n BIGINT"}
    workspace.pipeline("hourly", HOURLY, transform_sql=COUNT, listener_py=LISTENER, **ddl)
    other = HOURLY.replace("tables/out", "tables/other")
    workspace.pipeline("other", other, transform_sql=COUNT, **ddl)
    workspace.land_json("landing/events/1.json", _rows("10:05:00", "12:00:00"), mtime=1)
    for report in workspace.drain("other", "hourly"):
        assert report.error is None
    first = [
        ["started", "hourly"],
        ["progress", "hourly", 0, 2],
        ["progress", "hourly", 1, 0],
        ["terminated", None],
    ]
    assert _heard(workspace) == first

    # The second run has a session of its own, and so has its listener.
    workspace.land_json("landing/events/2.json", _rows("14:00:00"), mtime=2)
    assert workspace.run("hourly").state == "succeeded"
    assert _heard(workspace)[4:6] == [["started", "hourly"], ["progress", "hourly", 2, 1]]
    assert [n for _, n in workspace.delta("tables/out")] == [1, 1]

    workspace.pipeline(
        "mute", other.replace("other", "mute"), transform_sql=COUNT, listener_py="x = 1", **ddl
    )
    error = refused(workspace, "mute", "listener.no-class", TransformError)
    assert "class Listener(StreamingQueryListener)" in str(error.do)


def _heard(workspace: Workspace) -> list[list[object]]:
    heard = workspace.root / "include" / "pipelines" / "hourly" / "heard.jsonl"
    return [json.loads(line) for line in heard.read_text().splitlines()]
