"""Pipelines with state in a bucket of Google Cloud Storage: three runs, a death in the middle, and recovery.

By Google's two APIs, of fake-gcs-server and a gateway in front of it; Google's own service was not tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.bucket_sandbox import only_here
from tests.support.deaths import die, run_apart
from tests.support.gcs_server import GcsServer
from tests.support.google_sandbox import GoogleSandbox
from tests.support.kill_matrix import (
    FILES,
    IN_GOOGLES_BUCKET,
    NAME,
    SPEC,
    Kind,
    assert_one_more_run_is_a_no_op,
    ended,
    land,
)

pytestmark = [pytest.mark.full, pytest.mark.capability("OBJ-18")]


@pytest.fixture
def google(spark: SparkSession, gcs: GcsServer) -> Iterator[GcsServer]:
    with only_here(spark):
        yield gcs


@pytest.fixture(params=["delta", "parquet"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return IN_GOOGLES_BUCKET[request.param]


@pytest.mark.parametrize("moment", ["before batch.end 2", "after batch.note 1"])
def test_of_three_runs_the_second_dies_and_every_row_comes_once(
    kind: Kind, moment: str, google: GcsServer, spark: SparkSession, tmp_path: Path
) -> None:
    control = kind.project(tmp_path / "control", spark, google)
    struck = kind.project(tmp_path / "struck", spark, google)
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


def test_a_command_drains_into_a_bucket_with_the_jars_of_google_alone(google: GcsServer, tmp_path: Path) -> None:
    lake = IN_GOOGLES_BUCKET["delta"].project(tmp_path / "project", None, google)
    land(lake, 0)
    done = run_apart(lake, NAME)
    assert done.returncode == 0, done.stdout
    assert lake.delta("tables/hourly")


ACCOUNT = "drawdown@tests.iam.gserviceaccount.com"


@pytest.fixture
def guarded(spark: SparkSession) -> Iterator[GcsServer]:
    """A server that asks for the key of one service account."""
    with only_here(spark), GcsServer(account=ACCOUNT) as server:
        yield server


def test_the_key_file_of_a_service_account_opens_the_bucket_to_every_client(
    guarded: GcsServer, tmp_path: Path, spark: SparkSession
) -> None:
    lake = GoogleSandbox(tmp_path / "project", spark, guarded)
    lake.pipeline(NAME, SPEC.replace("SINK", "format: delta, path: tables/hourly, schema: out.ddl"), **FILES)
    lake.use_key(ACCOUNT)
    land(lake, 0)
    assert lake.run(NAME).counts.published


@pytest.mark.parametrize("account", ["", "somebody@else.iam.gserviceaccount.com"])
def test_a_key_that_the_storage_refuses_is_named_before_spark_starts(
    guarded: GcsServer, tmp_path: Path, account: str
) -> None:
    lake = GoogleSandbox(tmp_path / "project", None, guarded)
    lake.pipeline(NAME, SPEC.replace("SINK", "format: delta, path: tables/hourly, schema: out.ddl"), **FILES)
    if account:
        lake.use_key(account)
    land(lake, 0)
    done = run_apart(lake, NAME)
    assert done.returncode == 5, done.stdout
    assert "storage.denied" in done.stdout


def test_a_bucket_that_does_not_exist_is_named_before_spark_starts(google: GcsServer, tmp_path: Path) -> None:
    lake = IN_GOOGLES_BUCKET["delta"].project(tmp_path / "project", None, google)
    assert isinstance(lake, GoogleSandbox)
    lake.address = "gs://nowhere/lake"
    lake.keep_in(lake.address, lake.reached())
    done = run_apart(lake, NAME)
    assert done.returncode == 5, done.stdout
    assert "storage.no-bucket" in done.stdout
