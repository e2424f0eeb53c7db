"""The preflight against checkpoints, tables and topics that Spark itself worked on.

The rule under test: no is only said when a Spark started now would find nothing; a doubt is a yes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from drawdown.application import SparkApplication, exit_code
from drawdown.application.watcher import Report
from drawdown.checkpoint import CheckpointFiles
from drawdown.errors import RefusedError, SourceError
from drawdown.metastore.records import BatchStatus, Run
from drawdown.plan.preflight import Preflight, preflight
from drawdown.rebuild.refusals import refuse_rebuild
from drawdown.sources.files.all_files import list_source_files
from drawdown.spec import load_pipeline
from drawdown.storage import Storage
from drawdown.values.temporary_names import FINISHED_NAMES
from drawdown.workspace import Workspace
from tests.support.plain_drain import CHECKPOINT, Flights
from tests.support.sandbox import Sandbox

FILES = """
    sources:
      left: {{format: text, path: {path}, options: {options}}}
    transform: transform.sql
    sink: {{format: delta, path: tables/out, schema: out.ddl, mode: append, publish: audited}}
"""


@pytest.fixture
def files(sandbox: Sandbox) -> Iterator[Flights]:
    """A pipeline over the text files of `in`."""
    flights = Flights(sandbox, FILES.format(path="in", options="{}"))
    yield flights
    flights.metastore.close()


# Listings: the same files as Spark.

LISTINGS: list[tuple[str, dict[str, str]]] = [
    ("in", {}),
    ("in/*", {}),
    ("in/*/*", {}),
    ("in", {"recursiveFileLookup": "true"}),
    ("in", {"recursiveFileLookup": "true", "pathGlobFilter": "*.{csv,tmp}"}),
    ("in/{plain,plain/deep}", {}),
    ("in/[!_p.]*", {}),
    ("in/_hidden", {}),
    ("in/pla?n/*.csv", {}),
    ("partitions", {}),
    ("partitions/day=[3]", {}),
    ("partitions/day=?/hour=*/a.csv", {}),
    ("underscore", {}),
    ("with space/ä%20+#", {}),
]
TREE = [
    *(
        "in/a.csv",
        "in/b.txt",
        "in/c.csv.tmp",
        "in/tmp",
        "in/apart",
        "in/x~",
        "in/.dot.csv",
        "in/_under.csv",
        "in/d.csv._COPYING_",
    ),
    *("in/plain/a.csv", "in/plain/deep/b.csv", "in/_hidden/a.csv", "in/.hidden/a.csv"),
    *("partitions/day=1/hour=1/a.csv", "partitions/day=2/hour=1/a.csv", "partitions/day=3/hour=2/a.csv"),
    *("partitions/day=1/hour=1/.x.crc", "partitions/day=1/hour=1/_hidden/a.csv"),
    *("underscore/_day=3/a.csv", "with space/ä%20+#/a b%c#.csv"),
]


@pytest.mark.parametrize(("path", "options"), LISTINGS)
def test_a_listing_holds_exactly_what_sparks_file_source_takes(
    sandbox: Sandbox, spark: SparkSession, path: str, options: dict[str, str]
) -> None:
    for name in TREE:
        sandbox.land(name, name)
    checkpoint = sandbox.root / "checkpoint"
    query = (
        spark.readStream.options(**{"pathGlobFilter": FINISHED_NAMES, **options})
        .schema("value string")
        .csv(str(sandbox.storage / path))
        .writeStream.foreachBatch(lambda batch, _: None)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    seen = CheckpointFiles(Storage(str(sandbox.root)), "checkpoint").seen_files(0)
    lower = {name.lower(): value for name, value in options.items()}
    listed = list_source_files(Storage(str(sandbox.storage)), path, lower)
    assert sorted(info.path for info in listed) == sorted(file.path for file in seen)


# Files


def test_before_the_first_run_there_is_work_as_soon_as_a_file_is_there(files: Flights) -> None:
    (files.sandbox.storage / "in").mkdir()
    assert files.look() == Preflight(False, [], {"left": {"files": 0, "bytes": 0, "too_old": 0}})
    files.sandbox.land("in/_hidden.txt", "not yet")
    assert not files.look().work
    files.sandbox.land("in/a.txt", "12345")
    found = files.look()
    assert found.work
    [arrived] = (datetime.fromisoformat(each.pop("oldest")) for each in found.backlog.values())
    assert abs(datetime.now(UTC) - arrived) < timedelta(minutes=1)
    assert found.backlog == {"left": {"files": 1, "bytes": 5, "too_old": 0}}
    assert found.reasons == [f"source left: 1 new file in {files.sandbox.storage}/in"]


def test_what_spark_has_read_is_no_work_and_a_new_file_is(files: Flights) -> None:
    for number in range(12):
        files.sandbox.land(f"in/odd {number}%20é.txt", "x")
    files.drain_files(maxFilesPerTrigger=1)
    assert files.look() == Preflight(False, [], {"left": {"files": 0, "bytes": 0, "too_old": 0}})
    files.sandbox.land("in/new.txt", "x")
    assert files.look().backlog["left"]["files"] == 1
    files.drain_files(maxFilesPerTrigger=1)
    assert not files.look().work


def test_a_missing_folder_ends_a_run_before_spark_and_the_record_says_why(sandbox: Sandbox) -> None:
    pipeline = sandbox.pipeline(
        "flights",
        FILES.format(path="in", options="{}"),
        transform_sql="select * from left",
        out_ddl="value string",
        left_ddl="value string",
    )

    def no_spark() -> dict[str, str]:
        raise AssertionError("Spark was started")

    with sandbox.metastore() as metastore:
        application = SparkApplication(Workspace(sandbox.project, metastore), no_spark, {"by": "a test"})
        reports = application.drain_all([pipeline])
        [run] = metastore.runs("flights")
    [error] = [report.error for report in reports]
    assert error is not None
    assert (error.id, error.where) == ("source.missing", f"{sandbox.storage}/in")
    assert exit_code(reports) == SourceError.exit_code == 5
    assert (run.state, run.error, run.origin) == ("failed", error.as_dict(), {"by": "a test"})


WINDOWS = """
    sources:
      left: {format: json, path: in, schema: left.ddl, watermark: {column: at, delay: 1 hour}}
    transform: transform.sql
    sink: {format: delta, path: tables/out, schema: out.ddl, mode: append}
    state: {partitions: 1}
"""
COUNTED = (
    "select window(at, '{window}').start as start, count(*) as n from left group by window(at, '{window}')"
)


def test_a_changed_transform_is_compared_by_the_next_run_although_nothing_is_new(sandbox: Sandbox) -> None:
    def write(window: str, more: str = "") -> None:
        sandbox.pipeline(
            "flights",
            WINDOWS,
            transform_sql=COUNTED.format(window=window) + more,
            out_ddl="start timestamp, n bigint",
            left_ddl="at timestamp",
        )

    write("1 hour")
    sandbox.land_json("in/a.json", [{"at": "2024-01-01T10:00:00Z"}])
    sandbox.run("flights")
    assert sandbox.drain("flights") == [Report("flights")], "nothing new"

    write("2 hours")
    [report] = sandbox.drain("flights")
    assert report.error is not None
    assert report.error.id == "checkpoint.changed"

    write("1 hour", " having count(*) < 100")
    [report] = sandbox.drain("flights")
    assert (report.error, report.run and report.run.batches) == (None, 0), "it fits, and nothing is new"
    assert sandbox.drain("flights") == [Report("flights")], "it is compared once"

    write("2 hours")
    assert sandbox.drain("flights")[0].error is not None, "what fitted was another change"


def test_a_file_that_spark_ignores_as_too_old_is_counted_and_starts_nothing(files: Flights) -> None:
    now = time.time()
    files.sandbox.land("in/a.txt", "x", mtime=now)
    files.sandbox.land("in/b.txt", "x", mtime=now - 8 * 86_400)
    files.drain_files()
    assert files.look() == Preflight(False, [], {"left": {"files": 0, "bytes": 0, "too_old": 0}})
    files.sandbox.land("in/c.txt", "x", mtime=now - 8 * 86_400)
    assert files.look() == Preflight(False, [], {"left": {"files": 0, "bytes": 0, "too_old": 1}})
    files.drain_files()
    assert files.look() == Preflight(False, [], {"left": {"files": 0, "bytes": 0, "too_old": 1}})


def test_a_longer_max_file_age_lets_old_files_count(sandbox: Sandbox) -> None:
    flights = Flights(sandbox, FILES.format(path="in", options="{maxFileAge: 30d}"))
    now = time.time()
    sandbox.land("in/a.txt", "x", mtime=now)
    flights.drain_files(maxFileAge="30d")
    sandbox.land("in/b.txt", "x", mtime=now - 8 * 86_400)
    found = flights.look().backlog["left"]
    assert {**found, "oldest": ""} == {"files": 1, "bytes": 1, "too_old": 0, "oldest": ""}


def test_the_output_of_a_file_sink_counts_by_its_log(sandbox: Sandbox, spark: SparkSession) -> None:
    flights = Flights(sandbox, FILES.format(path="chain", options="{}"))
    sandbox.land("first/a.txt", "x")
    query = (
        spark.readStream.text(str(sandbox.storage / "first"))
        .writeStream.format("text")
        .option("checkpointLocation", str(sandbox.root / "first-checkpoint"))
        .trigger(availableNow=True)
        .start(str(sandbox.storage / "chain"))
    )
    query.awaitTermination()
    assert flights.look().backlog["left"]["files"] == 1
    flights.drain_files("chain")
    sandbox.land("chain/part-of-a-dead-attempt.txt", "x")
    assert not flights.look().work


def test_an_unfinished_batch_is_work(files: Flights) -> None:
    files.sandbox.land("in/a.txt", "x")
    files.drain_files()
    (files.sandbox.storage / CHECKPOINT / "commits" / "0").unlink()
    assert files.look().reasons[0] == "a batch was planned and not committed"


def test_a_torn_checkpoint_is_a_doubt_and_a_doubt_is_work(files: Flights) -> None:
    files.sandbox.land("in/a.txt", "x")
    files.drain_files()
    (files.sandbox.storage / CHECKPOINT / "offsets" / "0").write_text("")
    found = files.look()
    assert found.work
    assert found.reasons == ["in doubt: a file of the checkpoint cannot be read: it is empty"]


def test_a_link_out_of_the_storage_root_is_a_doubt(files: Flights) -> None:
    files.sandbox.land("in/a.txt", "x")
    files.drain_files()
    (files.sandbox.storage / "in" / "link").symlink_to("/etc/hostname")
    assert files.look().reasons[0].startswith("source left: in doubt: the path 'in/link' is a symbolic link")


def test_a_source_that_the_checkpoint_does_not_know_is_work(sandbox: Sandbox) -> None:
    flights = Flights(sandbox, FILES.format(path="in", options="{}"))
    sandbox.land("in/a.txt", "x")
    reader = sandbox.spark.readStream.text(str(sandbox.storage / "in"))  # type: ignore[union-attr]
    flights.drain(reader, order=("other",))
    assert flights.look().reasons == ["source left: is not in the checkpoint"]


def test_sources_that_nobody_can_name_are_a_doubt(files: Flights) -> None:
    files.sandbox.land("in/a.txt", "x")
    reader = files.sandbox.spark.readStream.text(str(files.sandbox.storage / "in"))  # type: ignore[union-attr]
    files.drain(reader, order=())
    assert "in doubt: the checkpoint has 1 source, known by name: 0" in files.look().reasons


def test_each_source_is_compared_with_its_own_part_of_the_checkpoint(
    sandbox: Sandbox, spark: SparkSession
) -> None:
    spec = FILES.format(path="in", options="{}").replace(
        "transform: ", "  right: {format: text, path: right}\n    transform: "
    )
    flights = Flights(sandbox, spec)
    sandbox.land("in/a.txt", "x")
    sandbox.land("right/b.txt", "x")
    # Spark numbers the sources by their place in the plan, not in the spec.
    frames = [spark.readStream.text(str(sandbox.storage / name)) for name in ("right", "in")]
    flights.drain(*frames, order=("right", "left"))
    assert not flights.look().work
    sandbox.land("right/c.txt", "x")
    found = flights.look()
    assert (found.backlog["left"]["files"], found.backlog["right"]["files"]) == (0, 1)


def test_a_format_that_only_spark_can_tell_is_always_work(files: Flights) -> None:
    pipeline = load_pipeline(files.sandbox.project, "flights")
    rate = pipeline.sources["left"].model_copy(update={"format": "rate"})
    pipeline = pipeline.model_copy(update={"sources": {"left": rate}})
    found = preflight(Workspace(files.sandbox.project, files.metastore), pipeline)
    assert found.reasons == ["source left: only Spark can tell whether a rate source has data"]


# What the metastore knows


@pytest.mark.parametrize(
    ("status", "work"),
    [("staged", True), ("committed", True), ("passed", True), ("held", False), ("published", False)],
)
def test_a_slice_that_waits_for_a_drain_is_work(files: Flights, status: BatchStatus, work: bool) -> None:
    files.sandbox.land("in/a.txt", "x")
    files.status = status
    files.drain_files()
    assert files.look().work is work


def test_a_batch_that_the_metastore_does_not_know_is_work(files: Flights) -> None:
    files.sandbox.land("in/a.txt", "x")
    files.drain_files()
    assert not files.look().work
    generation = files.metastore.next_generation("flights") - 1
    files.metastore.forget_batches(files.lease, generation, -1)
    assert files.look().reasons == ["batch 0 was committed, but is not in the metastore"]


def test_a_run_that_died_without_a_word_is_work_once_its_lease_is_over(files: Flights) -> None:
    (files.sandbox.storage / "in").mkdir()
    files.metastore.start_run(Run("r1", "flights"))
    assert not files.look().work
    files.metastore.release(files.lease)
    assert files.look().reasons == ["run r1 died without closing its record"]
    files.metastore.finish_run("r1", "failed")
    assert not files.look().work


def test_a_carrier_that_no_batch_has_read_is_work(sandbox: Sandbox, spark: SparkSession) -> None:
    flights = Flights(sandbox, FILES.format(path="in", options="{}"))
    sandbox.land("in/a.txt", "x")
    carriers = "_drawdown/flights/carriers-1/left"
    sandbox.land(f"{carriers}/r1.json", "{}")
    frames = [spark.readStream.text(str(sandbox.storage / name)) for name in ("in", carriers)]
    flights.drain(*frames, order=("left", "left#carrier"))
    assert not flights.look().work
    sandbox.land(f"{carriers}/r2.json", "{}")
    assert flights.look().reasons == ["a carrier of left has not been read yet"]


# Delta

DELTA = FILES.replace("format: text", "format: delta")


def test_a_delta_source_is_work_when_the_table_moved_on(sandbox: Sandbox, spark: SparkSession) -> None:
    flights = Flights(sandbox, DELTA.format(path="tables/in", options="{}"))
    table = str(sandbox.storage / "tables/in")
    spark.conf.set("spark.databricks.delta.snapshotPartitions", "2")
    found = flights.look()
    assert found.error is not None
    assert (found.error.id, found.error.where) == ("source.missing", str(table))
    row = spark.createDataFrame([("x",)], "value string")
    row.write.format("delta").save(table)
    assert flights.look().backlog["left"] == {"versions": 1}
    flights.drain(spark.readStream.format("delta").load(table))
    assert flights.look() == Preflight(False, [], {"left": {"versions": 0}})
    row.write.format("delta").mode("append").save(table)
    row.write.format("delta").mode("append").save(table)
    assert flights.look().backlog["left"] == {"versions": 2}
    flights.drain(spark.readStream.format("delta").load(table))
    spark.sql(f"alter table delta.`{table}` set tblproperties ('a' = 'b')")
    assert flights.look().work
    flights.drain(spark.readStream.format("delta").load(table))
    assert not flights.look().work, "a commit without data must not start Spark forever"


def test_a_delta_table_that_was_made_again_is_another_one_however_few_versions_it_has(
    sandbox: Sandbox, spark: SparkSession
) -> None:
    flights = Flights(sandbox, DELTA.format(path="tables/in", options="{}"))
    flights.metastore.release(flights.lease)
    table = str(sandbox.storage / "tables/in")
    row = spark.createDataFrame([("x",)], "value string")
    for _ in range(3):
        row.write.format("delta").mode("append").save(table)
    sandbox.run("flights")
    assert not flights.look().work
    shutil.rmtree(table)
    row.write.format("delta").save(table)
    (reason,) = flights.look().reasons
    assert reason == f"source left: the Delta table at {table} was recreated since it was read"
    with pytest.raises(SourceError) as error:
        sandbox.run("flights")
    assert error.value.id == "source.made-again"
    assert "drawdown rebuild start flights" in str(error.value.do)
    pipeline = load_pipeline(sandbox.project, "flights")
    with pytest.raises(RefusedError, match=r"rebuild\.other-table"):
        refuse_rebuild(Workspace(sandbox.project, flights.metastore), pipeline)


@pytest.mark.capability("RIGHT-05")
def test_an_older_copy_of_a_delta_table_is_noticed(sandbox: Sandbox, spark: SparkSession) -> None:
    flights = Flights(sandbox, DELTA.format(path="tables/in", options="{}"))
    flights.metastore.release(flights.lease)
    table, kept = str(sandbox.storage / "tables/in"), sandbox.root / "kept"
    row = spark.createDataFrame([("x",)], "value string")
    for number in range(3):
        row.write.format("delta").mode("append").save(table)
        if number == 0:
            shutil.copytree(table, kept)
    sandbox.run("flights")
    shutil.rmtree(table)
    shutil.copytree(kept, table)
    (reason,) = flights.look().reasons
    assert reason == f"source left: the Delta table at {table} is older than what was read of it"
    with pytest.raises(SourceError) as error:
        sandbox.run("flights")
    assert error.value.id == "source.older-copy"
    assert "versions up to 0, and version 2 was read" in error.value.what


# Cost


def test_ten_thousand_seen_files_cost_less_than_two_seconds(files: Flights) -> None:
    first = files.sandbox.land("in/first.txt", "x")
    files.drain_files()
    log = files.sandbox.storage / CHECKPOINT / "sources" / "0" / "0"
    version, line = log.read_text().splitlines()
    for number in range(1, 10_000):
        (first.parent / f"{number:05}.txt").write_bytes(b"x")
        os.utime(first.parent / f"{number:05}.txt", ns=(0, first.stat().st_mtime_ns))
    names = ["first", *(f"{number:05}" for number in range(1, 10_000))]
    log.write_text("\n".join([version, *(line.replace("first", name) for name in names)]))
    started = time.process_time()
    found = files.look()
    assert time.process_time() - started < 2
    assert found == Preflight(False, [], {"left": {"files": 0, "bytes": 0, "too_old": 0}})


def test_the_preflight_imports_neither_spark_nor_great_expectations() -> None:
    code = (
        "import sys, drawdown.plan.preflight;"
        "heavy = ('pyspark', 'great_expectations', 'deltalake', 'confluent_kafka');"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
