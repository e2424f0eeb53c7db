"""A checkpoint goes back on every kind of sink: with it where that can be, else refused with the ways out."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from drawdown.machine.broker import Broker
from drawdown.machine.postgres import PostgresServer
from tests.support.kill_matrix import KINDS, NAME, Rows, assert_one_more_run_is_a_no_op, land
from tests.support.recovering import CHECKPOINT, checkpoint, mend, refused
from tests.support.workspace import Workspace, multiset

pytest_plugins = ("tests.fixtures.postgres",)

Found = tuple[Rows, list[tuple[Any, ...]], Rows]


def found(kind: str, workspace: Workspace) -> Found:
    """What readers see, what was set aside, and the rows of the state."""
    assert workspace.spark is not None
    rejected = sorted((str(row["reasons"]), row["payload"]) for row in workspace.quarantined(NAME))
    state = workspace.spark.read.format("statestore").load(str(workspace.storage / CHECKPOINT)).collect()
    return KINDS[kind].rows(workspace), rejected, multiset((str(row.key), str(row.value)) for row in state)


def drained(kind: str, root: Path, spark: SparkSession, server: Any, waves: int) -> Workspace:
    workspace = KINDS[kind].project(root, spark, server)
    for wave in range(waves):
        land(workspace, wave)
        workspace.run(NAME)
    return workspace


def ends_like(kind: str, workspace: Workspace, control: Found) -> None:
    workspace.run(NAME)
    assert found(kind, workspace) == control
    assert_one_more_run_is_a_no_op(workspace)


@pytest.mark.parametrize(
    "kind",
    ["delta update audited", pytest.param("delta complete audited", marks=pytest.mark.full)],
)
@pytest.mark.fault("F14", "delta")
def test_a_merged_or_overwritten_table_goes_back_with_its_checkpoint(
    tmp_path: Path, spark: SparkSession, kind: str
) -> None:
    workspace = drained(kind, tmp_path / "project", spark, None, 2)
    control = found(kind, workspace)
    with workspace.metastore() as metastore:
        first = metastore.runs(NAME)[1].run_id
        last = max(b.batch_id for b in metastore.batches(NAME, 1) if b.run_id == first)
    before = workspace.everything()
    said = checkpoint(workspace, "rewind", "--to", str(last), code=3).stderr
    assert "sink.ahead" in said
    assert workspace.everything() == before
    mend(workspace, " ".join(said.split()))
    ends_like(kind, workspace, control)


@pytest.mark.parametrize("kind", ["postgres update", pytest.param("postgres append", marks=pytest.mark.full)])
@pytest.mark.fault("F14", "postgres")
def test_a_database_goes_back_by_its_own_backup_and_the_checkpoint_by_a_snapshot(
    tmp_path: Path, spark: SparkSession, postgres_server: PostgresServer, kind: str
) -> None:
    workspace = drained(kind, tmp_path / "project", spark, postgres_server, 1)
    taken = json.loads(checkpoint(workspace, "snapshot", "--json").stdout)["name"]
    backup = _dumped(workspace, postgres_server)
    land(workspace, 1)
    workspace.run(NAME)
    control = found(kind, workspace)
    before, rows = workspace.everything(), KINDS[kind].rows(workspace)
    said = " ".join(checkpoint(workspace, "restore", taken, code=3).stderr.split())
    assert "sink.ahead" in said
    assert "restore the database to a backup in which batch" in said
    assert workspace.everything() == before
    assert KINDS[kind].rows(workspace) == rows
    _put_back(workspace, postgres_server, backup)
    mend(workspace, said)
    ends_like(kind, workspace, control)


@pytest.mark.fault("F14", "kafka")
@pytest.mark.full
def test_what_a_topic_has_taken_stays_and_a_snapshot_of_now_brings_a_lost_checkpoint_back(
    tmp_path: Path, spark: SparkSession, broker: Broker
) -> None:
    kind = "kafka"
    control = found(kind, drained(kind, tmp_path / "control", spark, broker, 3))
    workspace = drained(kind, tmp_path / "project", spark, broker, 1)
    old = json.loads(checkpoint(workspace, "snapshot", "--json").stdout)["name"]
    land(workspace, 1)
    workspace.run(NAME)
    before, rows = workspace.everything(), KINDS[kind].rows(workspace)
    said = " ".join(checkpoint(workspace, "restore", old, code=3).stderr.split())
    assert "what this sink has taken cannot be taken back" in said
    assert "sink.ahead" in " ".join(checkpoint(workspace, "restore", old, "--sink", code=3).stderr.split())
    assert workspace.everything() == before
    assert KINDS[kind].rows(workspace) == rows

    mend(workspace, said)
    shutil.rmtree(workspace.storage / CHECKPOINT)
    land(workspace, 2)
    mend(workspace, refused(workspace, "checkpoint.missing").do)
    ends_like(kind, workspace, control)


def _database(workspace: Workspace, server: PostgresServer) -> str:
    database = workspace.project.databases["default"]
    return f"postgresql://{server.user}:{server.password}@{server.host}:{server.port}/{database.dbname}"


def _dumped(workspace: Workspace, server: PostgresServer) -> bytes:
    command = ["pg_dump", "--clean", "--if-exists", _database(workspace, server)]
    return subprocess.run(command, capture_output=True, check=True).stdout


def _put_back(workspace: Workspace, server: PostgresServer, dump: bytes) -> None:
    command = ["psql", "--quiet", "--set", "ON_ERROR_STOP=1", _database(workspace, server)]
    subprocess.run(command, input=dump, capture_output=True, check=True)
