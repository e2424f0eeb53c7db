"""A sink or a quarantine that somebody puts back from an older copy: noticed, with a way on."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from drawdown.changes.protocol import transaction_id
from drawdown.errors import RefusedError
from drawdown.held.decide import Decision, decide
from drawdown.plan.version_in_use import in_use
from drawdown.sinks.kafka.ledger import KafkaLedger
from drawdown.spec import load_pipeline
from drawdown.testing.servers.kafka import KafkaServer
from drawdown.workspace import Workspace
from tests.support.database import TestDatabase
from tests.support.kill_matrix import FILES, KINDS, NAME, SPEC, land
from tests.support.recovering import checkpoint, command_of, fix, refused
from tests.support.row_by_row import Rows
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.capability("RIGHT-05")


def rows(sandbox: Sandbox, kind: str) -> Counter[tuple[object, ...]]:
    spark = sandbox.spark
    assert spark is not None
    assert spark._jvm is not None
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    return KINDS[kind].rows(sandbox)


def put_back(sandbox: Sandbox, folder: str) -> None:
    shutil.rmtree(sandbox.storage / folder)
    shutil.copytree(sandbox.root / "kept", sandbox.storage / folder)


def keep(sandbox: Sandbox, folder: str) -> None:
    shutil.copytree(sandbox.storage / folder, sandbox.root / "kept")


@pytest.mark.parametrize(
    ("kind", "folder"),
    [
        ("delta append audited", "tables/hourly"),
        ("delta append audited", f"quarantine/{NAME}"),
        pytest.param("delta update direct", "tables/hourly", marks=pytest.mark.full),
        pytest.param("parquet files", "tables/hourly", marks=pytest.mark.full),
        pytest.param("delta complete audited", "tables/hourly", marks=pytest.mark.full),
    ],
)
def test_what_an_older_copy_lacks_is_taken_in_again(
    tmp_path: Path, spark: SparkSession, kind: str, folder: str
) -> None:
    sandbox = KINDS[kind].project(tmp_path / "project", spark)
    land(sandbox, 0)
    sandbox.run(NAME)
    keep(sandbox, folder)
    land(sandbox, 1)
    sandbox.run(NAME)
    wanted, aside = rows(sandbox, kind), len(sandbox.quarantined(NAME))
    put_back(sandbox, folder)
    before = sandbox.snapshot()
    land(sandbox, 2)
    sandbox_with_new_files = sandbox.snapshot()
    error = refused(sandbox, "sink.older-copy")
    assert sandbox.snapshot() == sandbox_with_new_files
    assert before.keys() <= sandbox_with_new_files.keys()
    text = error.do.split("put the newer copy back; or ")[1]
    assert command_of(text)[:2] == ["checkpoint", "rewind"]
    for number in (4, 5):
        (sandbox.storage / f"landing/events/{number}.csv").unlink()
    fix(sandbox, text)
    sandbox.drain(NAME)
    assert rows(sandbox, kind) == wanted
    assert len(sandbox.quarantined(NAME)) == aside


def test_a_person_may_go_on_without_what_an_older_copy_lacks(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        NAME, SPEC.replace("SINK", "schema: out.ddl, format: delta, path: tables/hourly"), **FILES
    )
    land(sandbox, 0)
    sandbox.run(NAME)
    keep(sandbox, "tables/hourly")
    first = rows(sandbox, "delta append audited")
    land(sandbox, 1)
    sandbox.run(NAME)
    both = rows(sandbox, "delta append audited")
    put_back(sandbox, "tables/hourly")
    land(sandbox, 2)
    error = refused(sandbox, "sink.older-copy")
    assert f"`drawdown checkpoint accept {NAME} --why ...` goes on without these rows" in error.do
    checkpoint(sandbox, "accept", "--why", "the disk was lost")
    sandbox.run(NAME)
    now = rows(sandbox, "delta append audited")
    assert first <= now
    assert not (both - first) & now, "they stay out"
    land(sandbox, 3)
    sandbox.run(NAME)


def test_a_database_that_was_put_back_is_noticed(postgres_sandbox: Sandbox, database: TestDatabase) -> None:
    sandbox = postgres_sandbox
    spec = SPEC.replace("SINK", "schema: out.ddl, format: postgres, table: public.hourly")
    sandbox.pipeline(NAME, spec, **FILES)
    land(sandbox, 0)
    sandbox.run(NAME)
    for table in ("hourly", "drawdown_ledger"):
        database.execute(f"CREATE TABLE kept_{table} AS TABLE {table}")
    land(sandbox, 1)
    sandbox.run(NAME)
    wanted = Counter(database.execute("SELECT * FROM hourly"))
    for table in ("hourly", "drawdown_ledger"):
        database.execute(f"DELETE FROM {table}")
        database.execute(f"INSERT INTO {table} SELECT * FROM kept_{table}")
    land(sandbox, 2)
    error = refused(sandbox, "sink.older-copy")
    for number in (4, 5):
        (sandbox.storage / f"landing/events/{number}.csv").unlink()
    fix(sandbox, error.do.split("put the newer copy back; or ")[1])
    sandbox.drain(NAME)
    assert Counter(database.execute("SELECT * FROM hourly")) == wanted


ONE_ROW = """
expectations:
  - {type: expect_table_row_count_to_be_between, kwargs: {max_value: 1}}
"""
DELTA = "format: delta, path: tables/hourly, schema: out.ddl"


def release(rows: Rows, run_id: str = "release-1") -> None:
    with Workspace.open(rows.sandbox.project) as workspace:
        pipeline = in_use(workspace, load_pipeline(rows.sandbox.project, NAME))
        decide(workspace, pipeline, Decision("release", run_id, "this process", "ada", "looked at"))


def test_a_release_behind_an_older_copy_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    """Its commit would be the newest batch of the table, and no later run could see what is missing."""
    rows = Rows("delta append", tmp_path / "project", spark, None, KINDS["delta append audited"])
    (rows.folder / "quality.yaml").write_text(ONE_ROW)
    rows.land(1)
    rows.until_drained()
    keep(rows.sandbox, "tables/hourly")
    rows.land(2)
    rows.until_drained()
    rows.land(3, 4)
    rows.sandbox.drain(NAME)
    put_back(rows.sandbox, "tables/hourly")
    assert rows.in_sink() == {1: 1}
    before = rows.sandbox.snapshot()
    with pytest.raises(RefusedError, match=r"sink\.older-copy"):
        release(rows)
    assert rows.sandbox.snapshot() == before
    checkpoint(rows.sandbox, "accept", "--why", "the disk was lost")
    with pytest.raises(RefusedError, match=r"sink\.staged-gone") as gone:
        release(rows, "release-2")
    assert rows.in_sink() == {1: 1}, "what waited lay in the folder, and is gone, too"
    fix(rows.sandbox, gone.value.do)
    rows.sandbox.drain(NAME)
    release(rows, "release-3")
    rows.until_drained()
    assert rows.in_sink() == {1: 1, 3: 1, 4: 1}


def test_a_batch_that_was_visible_before_its_verdict_is_looked_for(
    tmp_path: Path, spark: SparkSession
) -> None:
    rows = Rows("delta append", tmp_path / "project", spark, None)
    (rows.folder / "quality.yaml").write_text(ONE_ROW)
    rows.land(1)
    rows.until_drained()
    keep(rows.sandbox, "tables/hourly")
    rows.land(2, 3)
    rows.sandbox.drain(NAME)
    assert rows.in_sink() == {1: 1, 2: 1, 3: 1}, "seen at once, and held"
    put_back(rows.sandbox, "tables/hourly")
    rows.land(4)
    error = refused(rows.sandbox, "sink.older-copy")
    fix(rows.sandbox, error.do.split("put the newer copy back; or ")[1])
    (rows.folder / "quality.yaml").write_text("expectations: []\n")
    rows.until_drained()
    assert rows.in_sink() == {1: 1, 2: 1, 3: 1, 4: 1}


def test_an_older_ledger_of_a_topic_is_noticed(
    tmp_path: Path, spark: SparkSession, broker: KafkaServer
) -> None:
    rows = Rows("kafka", tmp_path / "project", spark, broker, KINDS["kafka"])
    rows.land(1)
    rows.until_drained()
    ledger = KafkaLedger(rows.sandbox.project.brokers["default"], NAME)
    id = transaction_id(NAME, 1, "output")
    older = ledger.marker(id)
    rows.land(2)
    rows.until_drained()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(ledger.topic, older.as_bytes(), id, 0)
    producer.flush()
    rows.land(3)
    refused(rows.sandbox, "sink.older-copy")
    checkpoint(rows.sandbox, "accept", "--why", "readers have them")
    rows.until_drained()
    assert rows.in_sink() == {1: 1, 2: 1, 3: 1}


def test_an_older_copy_of_a_source_that_has_grown_again_is_noticed(
    sandbox: Sandbox, spark: SparkSession
) -> None:
    sandbox.pipeline(
        NAME,
        "{sources: {events: {format: delta, path: tables/in}}, transform: transform.sql, "
        f"sink: {{{DELTA}}}}}",
        transform_sql="SELECT id FROM events",
        out_ddl="id INT",
    )
    table = str(sandbox.storage / "tables/in")

    def add(id: int) -> None:
        spark.createDataFrame([(id,)], "id INT").write.format("delta").mode("append").save(table)

    add(0)
    keep(sandbox, "tables/in")
    add(1)
    add(2)
    sandbox.run(NAME)
    put_back(sandbox, "tables/in")
    assert spark._jvm is not None
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    for id in (3, 4, 5):
        add(id)
    error = refused(sandbox, "source.older-copy")
    assert "version 2 of the table of source events of hourly is not the one that was read" in error.what
    assert sandbox.delta("tables/hourly") == [(0,), (1,), (2,)]
