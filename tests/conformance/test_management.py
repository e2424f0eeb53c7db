"""MGMT: several queries in one application, progress, listeners and metrics."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from urllib.request import urlopen

import pytest

from drawdown.application import SparkApplication
from drawdown.errors import TransformError
from drawdown.processes.ports import free_ports
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.support.command_line import CommandLine, drawdown
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox
from tests.support.timed import A_FILE_A_BATCH, HOURLY_FILES, rows_at
from tests.support.watching import watching


@pytest.mark.conformance("MGMT-02")
def test_a_run_record_keeps_the_progress_of_its_last_batches(sandbox: Sandbox) -> None:
    sandbox.pipeline("hourly", A_FILE_A_BATCH, **HOURLY_FILES)
    sandbox.land_json("landing/events/1.json", rows_at("10:05:00", "10:15:00"), mtime=1)
    sandbox.land_json("landing/events/2.json", rows_at("12:00:00"), mtime=2)
    first = sandbox.run("hourly")
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
    assert sandbox.delta("tables/out") == [(datetime(2024, 1, 1, 10, tzinfo=UTC), 2)]

    # The same two lines are late for good: one group, as Spark counts it.
    sandbox.land_json("landing/events/3.json", rows_at("10:20:00", "10:25:00"), mtime=3)
    second = sandbox.run("hourly")
    assert [entry["batch_id"] for entry in second.progress] == [3]
    assert second.progress[0]["operators"][0]["late_groups"] == second.counts.late_groups == 1
    assert second.counts.late == 2
    with sandbox.metastore() as metastore:
        kept = [(run.run_id, run.progress) for run in metastore.runs("hourly")]
    assert kept == [(second.run_id, second.progress), (first.run_id, first.progress)]
    assert len(sandbox.delta("tables/out")) == 1


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
def test_a_listener_hears_its_own_query_to_the_end_and_cannot_fail_it(sandbox: Sandbox) -> None:
    sandbox.pipeline("hourly", A_FILE_A_BATCH, listener_py=LISTENER, **HOURLY_FILES)
    other = A_FILE_A_BATCH.replace("tables/out", "tables/other")
    sandbox.pipeline("other", other, **HOURLY_FILES)
    sandbox.land_json("landing/events/1.json", rows_at("10:05:00", "12:00:00"), mtime=1)
    for report in sandbox.drain("other", "hourly"):
        assert report.error is None
    first = [
        ["started", "hourly"],
        ["progress", "hourly", 0, 2],
        ["progress", "hourly", 1, 0],
        ["terminated", None],
    ]
    assert _heard(sandbox) == first

    # The second run has a session of its own, and so has its listener.
    sandbox.land_json("landing/events/2.json", rows_at("14:00:00"), mtime=2)
    assert sandbox.run("hourly").state == "succeeded"
    assert _heard(sandbox)[4:6] == [["started", "hourly"], ["progress", "hourly", 2, 1]]
    assert [n for _, n in sandbox.delta("tables/out")] == [1, 1]

    sandbox.pipeline("mute", other.replace("other", "mute"), listener_py="x = 1", **HOURLY_FILES)
    error = refused(sandbox, "mute", "listener.no-class", TransformError)
    assert "class Listener(StreamingQueryListener)" in str(error.do)


def _heard(sandbox: Sandbox) -> list[list[object]]:
    heard = sandbox.root / "include" / "pipelines" / "hourly" / "heard.jsonl"
    return [json.loads(line) for line in heard.read_text().splitlines()]


KEYED = """
sources:
  rows: {{format: json, path: landing/{name}, schema: rows.ddl, malformed: fail}}
transform: transform.sql
sink: {{format: delta, path: tables/{name}, schema: rows.ddl}}
state: {{partitions: 2}}
group: several
"""


def _several(sandbox: Sandbox, *names: str) -> None:
    for name in names:
        sandbox.pipeline(name, KEYED.format(name=name), rows_ddl="k INT", transform_sql="SELECT k FROM rows")
        sandbox.land_json(f"landing/{name}/1.json", [{"k": 1}], mtime=1)


@pytest.mark.conformance("MGMT-01")
def test_one_query_of_several_fails_alone_and_all_are_awaited(sandbox: Sandbox) -> None:
    names = ("first", "second", "third")
    _several(sandbox, *names)
    sandbox.land("landing/second/2.json", "{broken", mtime=2)
    # One application, one session: it ends when the last of them has.
    reports = {report.pipeline: report for report in sandbox.drain(*names)}
    assert [report.run is not None for report in reports.values()] == [True, False, True]
    assert reports["second"].error is not None
    assert reports["second"].error.id == "source.malformed"
    assert [sandbox.delta(f"tables/{name}") for name in ("first", "third")] == [[(1,)], [(1,)]]

    # At the same time in one session: what ends one query leaves the other alone, by its name.
    with watching(sandbox, "first") as first:
        with watching(sandbox, "second") as second:
            second.awaited()
        assert second.reports[0].error is not None
        sandbox.land_json("landing/first/2.json", [{"k": 2}], mtime=2)
        first.until(lambda: sandbox.delta("tables/first") == [(1,), (2,)])
    assert first.run.state == "stopped"

    # Asked to stop, an application begins no further query; the next run has them all.
    (sandbox.storage / "landing/second/2.json").write_text('{"k": 2}')
    sandbox.land_json("landing/third/2.json", [{"k": 2}], mtime=2)
    with sandbox.metastore() as metastore:
        stopped = SparkApplication(Workspace(sandbox.project, metastore), session=sandbox.spark)
        stopped.stop.set()
        assert stopped.drain_all([load_pipeline(sandbox.project, name) for name in names]) == []
    assert [report.error for report in sandbox.drain(*names)] == [None, None, None]
    assert [sandbox.delta(f"tables/{name}") for name in names] == [[(1,), (2,)]] * 3


METRICS = """
clusters:
  local:
    conf:
      spark.sql.streaming.metricsEnabled: true
      spark.metrics.conf.driver.sink.csv.class: org.apache.spark.metrics.sink.CsvSink
      spark.metrics.conf.driver.sink.csv.directory: {folder}
      spark.metrics.conf.driver.sink.csv.period: 1
      spark.metrics.conf.driver.sink.csv.unit: seconds
      spark.ui.enabled: true
      spark.ui.port: {port}
      spark.metrics.conf.driver.sink.prometheusServlet.class: org.apache.spark.metrics.sink.PrometheusServlet
      spark.metrics.conf.driver.sink.prometheusServlet.path: /metrics/prometheus
"""


@pytest.mark.full
@pytest.mark.conformance("MGMT-04")
def test_gauges_of_a_query_reach_a_file_and_prometheus(sandbox: Sandbox) -> None:
    # Processes of their own: metrics and page belong to an application, and the tier's has none.
    folder, port = sandbox.root / "metrics", free_ports(1)[0]
    folder.mkdir()
    with (sandbox.root / "include" / "project.yaml").open("a") as project:
        project.write(METRICS.format(folder=folder, port=port))
    sandbox.pipeline("hourly", A_FILE_A_BATCH, **HOURLY_FILES)
    for i in range(3):
        sandbox.land_json(f"landing/events/{i}.json", rows_at(f"1{i}:00:00"), mtime=i + 1)
    drained = drawdown(sandbox.root, "run", "hourly")
    assert drained.returncode == 0, drained.stderr
    gauges = {path.name.split("spark.streaming.")[-1] for path in folder.glob("*.spark.streaming.hourly.*")}
    assert {"hourly.inputRate-total.csv", "hourly.states-rowsTotal.csv", "hourly.latency.csv"} <= gauges

    with CommandLine(sandbox.root, "watch", "hourly") as watch:
        sandbox.land_json("landing/events/9.json", rows_at("13:00:00"), mtime=9)
        watch.until(lambda line: "1 row published" in line)
        page = urlopen(f"http://127.0.0.1:{port}/metrics/prometheus", timeout=20).read().decode()
        assert "driver_spark_streaming_hourly_states_rowsTotal_Value" in page
        assert watch.interrupted() == 130
    assert sandbox.delta("tables/out") == [(datetime(2024, 1, 1, h, tzinfo=UTC), 1) for h in (10, 11)]

    text = drawdown(sandbox.root, "runs", "--prometheus").stdout
    assert 'drawdown_run_state{pipeline="hourly",state="stopped"} 1' in text
    assert 'drawdown_run_rows{pipeline="hourly",count="read"} 1' in text
    assert f'drawdown_watermark_seconds{{pipeline="hourly"}} {_rows_watermark(13)}' in text
    # A drain in another process goes on behind the watch.
    sandbox.land_json("landing/events/a.json", rows_at("14:30:00"), mtime=10)
    assert sandbox.run("hourly").counts.read == 1
    assert len(sandbox.delta("tables/out")) == 4


def _rows_watermark(hour: int) -> int:
    return int((datetime(2024, 1, 1, hour, tzinfo=UTC) - timedelta(minutes=10)).timestamp())
