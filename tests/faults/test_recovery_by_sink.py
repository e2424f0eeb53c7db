"""A checkpoint goes back on every kind of sink: with it where that can be, else refused with the ways out."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from drawdown.testing.servers.kafka import KafkaServer
from drawdown.testing.servers.postgres import PostgresServer
from tests.support.command_line import answer
from tests.support.kill_matrix import KINDS, NAME, Rows, assert_one_more_run_is_a_no_op, land
from tests.support.recovering import CHECKPOINT, checkpoint, fix, refused
from tests.support.sandbox import Sandbox, multiset

Found = tuple[Rows, list[tuple[Any, ...]], Rows]


def found(kind: str, sandbox: Sandbox) -> Found:
    """What readers see, what was set aside, and the rows of the state."""
    assert sandbox.spark is not None
    rejected = sorted((str(row["reasons"]), row["payload"]) for row in sandbox.quarantined(NAME))
    state = sandbox.spark.read.format("statestore").load(str(sandbox.storage / CHECKPOINT)).collect()
    return KINDS[kind].rows(sandbox), rejected, multiset((str(row.key), str(row.value)) for row in state)


def drained(kind: str, root: Path, spark: SparkSession, server: Any, waves: int) -> Sandbox:
    sandbox = KINDS[kind].project(root, spark, server)
    for wave in range(waves):
        land(sandbox, wave)
        sandbox.run(NAME)
    return sandbox


def ends_like(kind: str, sandbox: Sandbox, control: Found) -> None:
    sandbox.run(NAME)
    assert found(kind, sandbox) == control
    assert_one_more_run_is_a_no_op(sandbox)


@pytest.mark.full
@pytest.mark.parametrize(
    "kind",
    ["delta update audited", pytest.param("delta complete audited", marks=pytest.mark.full)],
)
@pytest.mark.fault("F14", "delta")
def test_a_merged_or_overwritten_table_goes_back_with_its_checkpoint(
    tmp_path: Path, spark: SparkSession, kind: str
) -> None:
    sandbox = drained(kind, tmp_path / "project", spark, None, 2)
    control = found(kind, sandbox)
    with sandbox.metastore() as metastore:
        first = metastore.runs(NAME)[1].run_id
        last = max(b.batch_id for b in metastore.batches(NAME, 1) if b.run_id == first)
    before = sandbox.everything()
    said = checkpoint(sandbox, "rewind", "--to", str(last), code=3).stderr
    assert "sink.ahead" in said
    assert sandbox.everything() == before
    fix(sandbox, " ".join(said.split()))
    ends_like(kind, sandbox, control)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["postgres update", pytest.param("postgres append", marks=pytest.mark.full)])
@pytest.mark.fault("F14", "postgres")
def test_a_database_goes_back_by_its_own_backup_and_the_checkpoint_by_a_snapshot(
    tmp_path: Path, spark: SparkSession, postgres_server: PostgresServer, kind: str
) -> None:
    sandbox = drained(kind, tmp_path / "project", spark, postgres_server, 1)
    taken = answer(checkpoint(sandbox, "snapshot", "--json").stdout)["name"]
    backup = _dumped(sandbox, postgres_server)
    land(sandbox, 1)
    sandbox.run(NAME)
    control = found(kind, sandbox)
    before, rows = sandbox.everything(), KINDS[kind].rows(sandbox)
    said = " ".join(checkpoint(sandbox, "restore", taken, code=3).stderr.split())
    assert "sink.ahead" in said
    assert "restore the database to a backup in which batch" in said
    assert sandbox.everything() == before
    assert KINDS[kind].rows(sandbox) == rows
    _put_back(sandbox, postgres_server, backup)
    fix(sandbox, said)
    ends_like(kind, sandbox, control)


@pytest.mark.fault("F14", "kafka")
@pytest.mark.full
def test_what_a_topic_has_taken_stays_and_a_snapshot_of_now_brings_a_lost_checkpoint_back(
    tmp_path: Path, spark: SparkSession, broker: KafkaServer
) -> None:
    kind = "kafka"
    control = found(kind, drained(kind, tmp_path / "control", spark, broker, 3))
    sandbox = drained(kind, tmp_path / "project", spark, broker, 1)
    old = answer(checkpoint(sandbox, "snapshot", "--json").stdout)["name"]
    land(sandbox, 1)
    sandbox.run(NAME)
    before, rows = sandbox.everything(), KINDS[kind].rows(sandbox)
    said = " ".join(checkpoint(sandbox, "restore", old, code=3).stderr.split())
    assert "rows in this sink cannot be undone" in said
    assert "sink.ahead" in " ".join(checkpoint(sandbox, "restore", old, "--sink", code=3).stderr.split())
    assert sandbox.everything() == before
    assert KINDS[kind].rows(sandbox) == rows

    fix(sandbox, said)
    shutil.rmtree(sandbox.storage / CHECKPOINT)
    land(sandbox, 2)
    fix(sandbox, refused(sandbox, "checkpoint.missing").do)
    ends_like(kind, sandbox, control)


def _database(sandbox: Sandbox, server: PostgresServer) -> str:
    database = sandbox.project.databases["default"]
    return f"postgresql://{server.user}:{server.password}@{server.host}:{server.port}/{database.dbname}"


def _dumped(sandbox: Sandbox, server: PostgresServer) -> bytes:
    command = ["pg_dump", "--clean", "--if-exists", _database(sandbox, server)]
    return subprocess.run(command, capture_output=True, check=True).stdout


def _put_back(sandbox: Sandbox, server: PostgresServer, dump: bytes) -> None:
    command = ["psql", "--quiet", "--set", "ON_ERROR_STOP=1", _database(sandbox, server)]
    subprocess.run(command, input=dump, capture_output=True, check=True)
