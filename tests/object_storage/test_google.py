"""Pipelines with state in a bucket of Google Cloud Storage: three runs, a death in the middle, and recovery.

By Google's two APIs, of fake-gcs-server and a gateway in front of it; Google's own service was not tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from drawdown.spark.object_storage import reach_buckets
from drawdown.storage import Storage
from drawdown.storage.put_if_absent import refuse_unsafe
from tests.support.bucket_sandbox import PREFIX, only_here
from tests.support.deaths import die, run_apart
from tests.support.gcs_server import GcsServer
from tests.support.google_sandbox import GoogleSandbox
from tests.support.kill_matrix import (
    IN_GOOGLES_BUCKET,
    NAME,
    assert_one_more_run_is_a_no_op,
    ended,
    land,
)
from tests.support.set_aside import CORRECTED, fill, replay, states, write

pytestmark = [pytest.mark.full, pytest.mark.capability("OBJ-18")]

ACCOUNT = "drawdown@tests.iam.gserviceaccount.com"


@pytest.fixture
def lake(spark: SparkSession, gcs: GcsServer, tmp_path: Path) -> Iterator[GoogleSandbox]:
    """A project of its own, whose storage root is a prefix of an empty bucket."""
    with only_here(spark):
        sandbox = GoogleSandbox(tmp_path / "project", spark, gcs)
        yield sandbox
        assert sandbox.on_this_machine() == set(), "the bucket was taken for a folder"


@pytest.fixture
def guarded(spark: SparkSession) -> Iterator[GcsServer]:
    """A server that asks for the key of one service account."""
    with only_here(spark), GcsServer(account=ACCOUNT) as server:
        yield server


@pytest.mark.parametrize(
    ("sink", "moment"), [("delta", "before batch.end 2"), ("parquet", "after batch.note 1")]
)
def test_of_three_runs_the_second_dies_and_every_row_comes_once(
    sink: str, moment: str, gcs: GcsServer, spark: SparkSession, tmp_path: Path
) -> None:
    kind = IN_GOOGLES_BUCKET[sink]
    with only_here(spark):
        control = kind.project(tmp_path / "control", spark, gcs)
        struck = kind.project(tmp_path / "struck", spark, gcs)
        assert isinstance(struck, GoogleSandbox)
        for wave in range(3):
            land(control, wave)
            land(struck, wave)
            control.run(NAME)
            if wave == 1:
                die(struck, NAME, moment)
            struck.run(NAME)
            assert kind.rows(struck) == kind.rows(control)
        assert ended(kind, struck) == ended(kind, control)
        assert sum(n for _, n in kind.rows(struck)) > 20
        assert_one_more_run_is_a_no_op(struck)
        assert struck.on_this_machine() == set(), "the bucket was taken for a folder"


def test_a_command_drains_with_the_jars_of_google_alone(gcs: GcsServer, tmp_path: Path) -> None:
    apart = IN_GOOGLES_BUCKET["delta"].project(tmp_path / "project", None, gcs)
    land(apart, 0)
    done = run_apart(apart, NAME)
    assert done.returncode == 0, done.stdout
    assert apart.delta("tables/hourly")


def test_rows_set_aside_are_replayed(lake: GoogleSandbox) -> None:
    fill(lake)
    assert states(lake) == {"95": "open", "96": "open", "150": "open", "broken": "open"}
    write(lake, CORRECTED)
    assert replay(lake).counts.replayed == 2
    assert states(lake) == {"95": "replayed", "96": "replayed", "150": "open", "broken": "open"}


def test_of_two_drivers_that_write_one_commit_one_is_told_that_it_has(
    lake: GoogleSandbox, spark: SparkSession
) -> None:
    reach_buckets(spark, lake.project)
    java = spark.sparkContext._jvm
    folder = java.org.apache.hadoop.fs.Path(f"{lake.address}/commits")
    files = folder.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    commit, cancelled = (java.org.apache.hadoop.fs.Path(folder, name) for name in ("7", "8"))
    first, second = (java.drawdown.CreateOnce(files, commit, False) for _ in range(2))
    first.write(bytearray(b"first"))
    second.write(bytearray(b"second"))
    second.close()
    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        first.close()
    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        java.drawdown.CreateOnce(files, commit, False)
    stopped = java.drawdown.CreateOnce(files, cancelled, False)
    stopped.write(bytearray(b"half"))
    stopped.cancel()
    assert lake.client.keys() == [f"{PREFIX}/commits/7"]
    assert lake.client.get(f"{PREFIX}/commits/7") == b"second"


def test_a_file_has_one_time_and_is_created_once(lake: GoogleSandbox) -> None:
    storage = Storage.of(lake.project)
    refuse_unsafe(storage)
    assert storage.create("landing/a b+ü.csv", b"first")
    assert not storage.create("landing/a b+ü.csv", b"second")
    assert [storage.info("landing/a b+ü.csv")] == list(storage.walk("landing"))
    assert storage.read_bytes("landing/a b+ü.csv") == b"first"
    storage.delete("landing")
    assert not storage.exists("landing")


def test_the_key_file_of_a_service_account_opens_the_bucket_to_every_client(
    guarded: GcsServer, tmp_path: Path, spark: SparkSession
) -> None:
    kept = IN_GOOGLES_BUCKET["delta"].project(tmp_path / "project", spark, guarded)
    assert isinstance(kept, GoogleSandbox)
    kept.use_key(ACCOUNT)
    land(kept, 0)
    assert kept.run(NAME).counts.published


@pytest.mark.parametrize("account", ["", "somebody@else.iam.gserviceaccount.com"])
def test_a_key_that_the_storage_refuses_is_named_before_spark_starts(
    guarded: GcsServer, tmp_path: Path, account: str
) -> None:
    kept = IN_GOOGLES_BUCKET["delta"].project(tmp_path / "project", None, guarded)
    assert isinstance(kept, GoogleSandbox)
    if account:
        kept.use_key(account)
    done = run_apart(kept, NAME)
    assert done.returncode == 5, done.stdout
    assert "storage.denied" in done.stdout


def test_a_bucket_that_does_not_exist_is_named_before_spark_starts(gcs: GcsServer, tmp_path: Path) -> None:
    lost = IN_GOOGLES_BUCKET["delta"].project(tmp_path / "project", None, gcs)
    assert isinstance(lost, GoogleSandbox)
    lost.address = "gs://nowhere/lake"
    lost.keep_in(lost.address, lost.reached())
    done = run_apart(lost, NAME)
    assert done.returncode == 5, done.stdout
    assert "storage.no-bucket" in done.stdout
