"""What can go wrong around a drain: lost leases, held slices, files that go, odd values, failing code."""

from __future__ import annotations

import sqlite3
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from drawdown.application import SparkApplication
from drawdown.application.watcher import Report, Watcher
from drawdown.errors import DrawdownError, RefusedError, SourceError, TransformError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch
from drawdown.plan.preflight import preflight
from drawdown.spec import Pipeline, load_pipeline
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: events.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: events.ddl, publish: audited}
state: {partitions: 1}
"""
FILES = {"events_ddl": "id INT, p STRING", "transform_sql": "SELECT id, p FROM events"}
PYTHON = SPEC.replace("transform.sql", "transform.py")
UDF = """
from pyspark.sql import functions as F

def transform(sources):
    @F.udf("int")
    def same(x):
        {body}
        return x
    return sources["events"].select(same("id").alias("id"), "p")
"""


def _failure(sandbox: Sandbox, name: str) -> DrawdownError:
    error = sandbox.drain(name)[0].error
    assert error is not None
    return error


def _drain_watched(sandbox: Sandbox, name: str, watcher: Watcher) -> Report:
    with sandbox.metastore() as metastore:
        application = SparkApplication(
            Workspace(sandbox.project, metastore), session=sandbox.spark, watcher=watcher
        )
        return application.drain_all([load_pipeline(sandbox.project, name)])[0]


@pytest.mark.sampled
@pytest.mark.parametrize(("sink_format", "publish"), [("delta", "audited"), ("parquet", "direct")])
def test_partition_values_may_hold_anything(sandbox: Sandbox, sink_format: str, publish: str) -> None:
    sink = f"sink: {{format: {sink_format}, path: tables/out, publish: {publish}, partition_by: [p]"
    schema = ", schema: events.ddl}" if sink_format == "delta" else "}"
    spec = SPEC.replace(SPEC.splitlines()[4], sink + schema)
    expect = "expectations: [{type: expect_column_max_to_be_between, kwargs: {column: id, max_value: 99}}]\n"
    sandbox.pipeline("odd", spec, **FILES, quality_yaml=expect)
    values = ["a/b", "c d", None, "ü", "100%", "x=y", "a%2Fb", "[z]", "{q}", "a:b"]
    sandbox.land_json("landing/events/my file %20 ü.json", [{"id": i, "p": v} for i, v in enumerate(values)])
    run = sandbox.run("odd")
    assert (run.verdict, run.counts.published) == ("pass", len(values))
    assert sandbox.spark is not None
    table = sandbox.spark.read.format(sink_format).load(str(sandbox.storage / "tables/out"))
    assert sorted(tuple(row) for row in table.select("id", "p").collect()) == list(enumerate(values))
    if sink_format == "delta":
        assert len(sandbox.delta("tables/out")) == len(values)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "twice",
    [
        "SELECT id, p FROM events UNION ALL SELECT id + 100, p FROM events",
        "SELECT a.id, b.p FROM events a JOIN events b ON a.id = b.id",
    ],
)
def test_a_source_used_twice_is_counted_once_and_leaves_no_doubt(sandbox: Sandbox, twice: str) -> None:
    rule = "rules: [{name: small, check: id < 50, on_fail: quarantine}]\n"
    sandbox.pipeline("twice", SPEC, **{**FILES, "transform_sql": twice}, quality_yaml=rule)
    sandbox.land_json("landing/events/a.json", [{"id": 1}, {"id": 99}], mtime=1)
    sandbox.land_json("landing/events/b.json", [{"id": 2}], mtime=2)
    run = sandbox.run("twice")
    assert (run.counts.read, run.counts.quarantined, run.counts.fed) == (3, 1, 2)
    assert [row["payload"] for row in sandbox.quarantined("twice")] == ['{"id":99}']
    assert sandbox.drain("twice")[0] == Report("twice"), "nothing new, and sure of it"


def test_rows_that_a_limit_leaves_unread_are_counted_all_the_same(sandbox: Sandbox) -> None:
    sandbox.pipeline("few", SPEC, **{**FILES, "transform_sql": "SELECT id, p FROM events LIMIT 5"})
    sandbox.land_json("landing/events/a.json", [{"id": i} for i in range(50)])
    run = sandbox.run("few")
    assert (run.counts.read, run.counts.fed, run.counts.published) == (50, 50, 5)


def test_a_run_behind_a_held_slice_says_so_and_the_next_starts_nothing(sandbox: Sandbox) -> None:
    expect = "expectations: [{type: expect_column_max_to_be_between, kwargs: {column: id, max_value: 9}}]\n"
    pipeline = sandbox.pipeline("held", SPEC, **FILES, quality_yaml=expect)
    sandbox.land_json("landing/events/a.json", [{"id": 100}], mtime=1)
    assert _failure(sandbox, "held").id == "audit.fail"
    sandbox.land_json("landing/events/b.json", [{"id": 2}], mtime=2)

    run = sandbox.run("held")

    assert (run.verdict, run.counts.published) == ("pass", 0)
    assert "waiting behind held batch 0: 1 passed row" in str(run.stop_reason)
    assert "drawdown release held" in str(run.stop_reason)
    assert sandbox.delta("tables/out") == []
    with sandbox.metastore() as metastore:
        assert not preflight(Workspace(sandbox.project, metastore), pipeline).work


class _Thief(Watcher):
    """Takes the lease over when a batch is noted, as another run does after the time-to-live."""

    def __init__(self, sandbox: Sandbox, batch_id: int) -> None:
        self._store = sandbox.root / "metastore.db"
        self._batch_id = batch_id

    def batch(self, pipeline: Pipeline, batch: Batch) -> None:
        if batch.batch_id == self._batch_id:
            with sqlite3.connect(self._store) as store:
                store.execute("UPDATE leases SET epoch = epoch + 1, holder = 'thief', run_id = 'other'")


@pytest.mark.parametrize("stolen_at", [0, 1])
def test_a_run_that_lost_its_lease_stages_and_publishes_nothing_more(
    sandbox: Sandbox, stolen_at: int
) -> None:
    sandbox.pipeline("lost", SPEC, **FILES)
    for i in range(2):
        sandbox.land_json(f"landing/events/{i}.json", [{"id": i}], mtime=i + 1)

    report = _drain_watched(sandbox, "lost", _Thief(sandbox, stolen_at))

    assert isinstance(report.error, RefusedError)
    assert report.error.id == "lease.lost"
    assert "thief" in report.error.what
    assert sandbox.delta("tables/out") == []
    with sandbox.metastore() as metastore:
        batches = metastore.batches("lost", 1)
        assert [(b.batch_id, b.status) for b in batches] == [(i, "staged") for i in range(stolen_at + 1)]
        assert metastore.holder_of("lost").holder == "thief", "the thief keeps it"
    with sqlite3.connect(sandbox.root / "metastore.db") as store:
        store.execute("UPDATE leases SET released = 1")
    sandbox.run("lost")
    assert sandbox.delta("tables/out") == [(0, None), (1, None)]


def test_the_lease_lives_on_while_one_batch_takes_longer_than_it(sandbox: Sandbox) -> None:
    project = sandbox.root / "include" / "project.yaml"
    project.write_text(project.read_text() + "lease_ttl: 6 seconds\n")
    slow = UDF.format(body="import time; time.sleep(14)")
    sandbox.pipeline("slow", PYTHON, events_ddl=FILES["events_ddl"], transform_py=slow)
    sandbox.land_json("landing/events/a.json", [{"id": 1}])
    seen, ended = [], threading.Event()

    def watch() -> None:
        with Metastore.open(sandbox.project.metastore_url) as metastore:
            while not ended.wait(0.25):
                seen.append(metastore.holder_of("slow") is not None)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        sandbox.run("slow")
    finally:
        ended.set()
        watcher.join()
    held = seen[seen.index(True) :]
    assert held.count(True) * 0.25 > 12
    assert sorted(held, reverse=True) == held, "held without a gap until the run ended"


def test_a_file_that_goes_before_its_batch_stops_the_run_and_counts_when_it_is_back(
    sandbox: Sandbox,
) -> None:
    """Spark alone marks it as read and goes on."""
    sandbox.pipeline("gone", SPEC, **FILES)
    sandbox.land_json("landing/events/a.json", [{"id": 1}], mtime=1)
    second = sandbox.land_json("landing/events/b.json", [{"id": 2}], mtime=2)

    class Mover(Watcher):
        def batch(self, pipeline: Pipeline, batch: Batch) -> None:
            second.rename(sandbox.root / "aside.json")

    report = _drain_watched(sandbox, "gone", Mover())

    assert isinstance(report.error, SourceError)
    assert report.error.id == "source.gone"
    assert str(second) in report.error.what
    (sandbox.root / "aside.json").rename(second)
    sandbox.run("gone")
    assert sandbox.delta("tables/out") == [(1, None), (2, None)]


def test_a_replayed_batch_judges_the_future_by_the_time_it_was_planned(sandbox: Sandbox) -> None:
    watermark = "watermark: {column: at, delay: 1 hour, max_future: 1 day}, options"
    spec = SPEC.replace("options", watermark) + "drain: {max_batches: 1}\n"
    sandbox.pipeline("soon", spec, events_ddl="at TIMESTAMP", transform_sql="SELECT at FROM events")
    sandbox.land_json("landing/events/a.json", [{"at": "2024-01-01T00:00:00Z"}], mtime=1)
    border = datetime.now(UTC) + timedelta(days=1, seconds=30)
    sandbox.land_json("landing/events/b.json", [{"at": border.isoformat()}], mtime=2)
    sandbox.run("soon")  # batch 1 is planned, and left to the next run
    time.sleep(max(0.0, (border - timedelta(days=1) - datetime.now(UTC)).total_seconds() + 1))
    run = sandbox.run("soon")
    assert (run.counts.read, run.counts.future, run.counts.fed) == (1, 1, 0)


@pytest.mark.full
def test_late_groups_are_counted_in_runs_of_more_batches_than_spark_remembers(sandbox: Sandbox) -> None:
    spec = """
sources:
  events:
    format: json
    path: landing/events
    schema: events.ddl
    options: {maxFilesPerTrigger: 1}
    watermark: {column: at, delay: 1 hour}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl, publish: audited}
state: {partitions: 1, provider: hdfs}
"""
    hours = (
        "SELECT window(at, '1 hour').start AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour')"
    )
    sandbox.pipeline(
        "many", spec, events_ddl="at TIMESTAMP", out_ddl="hour TIMESTAMP, n BIGINT", transform_sql=hours
    )
    times = ["2024-01-01T10:00:00Z", "2024-01-01T10:01:00Z", "2024-01-01T01:00:00Z"]
    for i in range(105):
        at = times[i] if i < len(times) else times[0]
        sandbox.land_json(f"landing/events/{i:03}.json", [{"at": at}], mtime=i + 1)
    run = sandbox.run("many")
    assert run.batches > 100
    assert (run.counts.late, run.counts.late_groups) == (1, 1)


def test_an_error_in_a_users_function_is_one_sentence_with_its_line(sandbox: Sandbox) -> None:
    raising = UDF.format(body='raise ValueError("the user does not exist")')
    sandbox.pipeline("raising", PYTHON, events_ddl=FILES["events_ddl"], transform_py=raising)
    sandbox.land_json("landing/events/a.json", [{"id": 1}])
    error = _failure(sandbox, "raising")
    assert isinstance(error, TransformError)
    assert error.id == "transform.raised"
    assert error.what.startswith("ValueError: the user does not exist")
    assert 'transform.py", line 7' in error.what
    assert sandbox.delta("tables/out") == []


def test_what_spark_itself_raises_in_a_batch_is_one_sentence(sandbox: Sandbox) -> None:
    failing = {**FILES, "transform_sql": "SELECT CAST(1 / (id - 2) AS INT) AS id, p FROM events"}
    sandbox.pipeline("failing", SPEC, **failing)
    sandbox.land_json("landing/events/a.json", [{"id": 1}, {"id": 2}])
    error = _failure(sandbox, "failing")
    assert (type(error), error.id) == (TransformError, "query.failed")
    assert "Division by zero" in error.what
    assert sandbox.delta("tables/out") == []


def test_a_rule_that_judges_differently_the_second_time_keeps_nothing(sandbox: Sandbox) -> None:
    """What is set aside is read a second time: another number of rows would be lost, or be there twice."""
    sandbox.pipeline(
        "moody",
        SPEC,
        **FILES,
        quality_yaml='rules: [{name: moody, check: "rand() < 0.5", on_fail: quarantine}]',
    )
    sandbox.land_json("landing/events/a.json", [{"id": number} for number in range(2000)])
    error = _failure(sandbox, "moody")
    assert (type(error), error.id) == (SourceError, "source.changed")
    assert "deterministic" in error.do
    assert sandbox.delta("tables/out") == sandbox.delta("quarantine/moody") == []


def test_a_value_that_spark_cannot_cast_is_named(sandbox: Sandbox) -> None:
    sandbox.pipeline("cast", SPEC, **{**FILES, "transform_sql": "SELECT CAST(p AS INT) AS id, p FROM events"})
    sandbox.land_json("landing/events/a.json", [{"id": 1, "p": "a"}])
    error = _failure(sandbox, "cast")
    assert isinstance(error, TransformError)
    assert 'The value \'a\' of the type "STRING" cannot be cast to "INT"' in error.what


def test_a_sink_path_that_is_a_file_is_one_error(sandbox: Sandbox) -> None:
    sandbox.pipeline("blocked", SPEC, **FILES)
    sandbox.land_json("landing/events/a.json", [{"id": 1}])
    sandbox.land("tables/out", "not a folder")
    before = sandbox.snapshot()
    error = _failure(sandbox, "blocked")
    assert isinstance(error, SourceError)
    assert error.id == "sink.unreadable"
    assert "\x1b" not in error.what
    assert sandbox.snapshot() == before


def test_a_null_in_a_column_declared_not_null_is_an_error_and_not_published(sandbox: Sandbox) -> None:
    spec = SPEC.replace("path: tables/out, schema: events.ddl", "path: tables/out, schema: out.ddl")
    sandbox.pipeline("strict", spec, **FILES, out_ddl="id INT NOT NULL, p STRING")
    sandbox.land_json("landing/events/a.json", [{"p": "x"}])
    error = _failure(sandbox, "strict")
    assert isinstance(error, TransformError)
    assert "NOT NULL constraint violated for column: id" in error.what
    assert sandbox.delta("tables/out") == []


class _OtherDriver(Watcher):
    """Commits the batch that a drain is about to commit."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._commits = sandbox.storage / "_drawdown" / "feed" / "checkpoint-1" / "commits"

    def batch(self, pipeline: Pipeline, batch: Batch) -> None:
        (self._commits / str(batch.batch_id)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_a_batch_that_another_driver_commits_ends_the_run_and_is_published_once(sandbox: Sandbox) -> None:
    sandbox.pipeline("feed", SPEC, **FILES)
    sandbox.land_json("landing/events/0.json", [{"id": 1, "p": "a"}])
    error = _drain_watched(sandbox, "feed", _OtherDriver(sandbox)).error
    assert error is not None
    assert (error.id, error.exit_code) == ("checkpoint.other-writer", 4)
    assert sandbox.delta("tables/out") == []
    sandbox.drain("feed")
    assert sandbox.delta("tables/out") == [(1, "a")]
