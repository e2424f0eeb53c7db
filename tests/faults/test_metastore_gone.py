"""The metastore is locked or gone: a run does not start, or stops before its next commit; nothing is lost."""

from __future__ import annotations

import signal
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.errors import DrawdownError
from drawdown.machine.postgres import PostgresServer
from drawdown.metastore import Metastore
from tests.support.deaths import run_apart
from tests.support.frozen import frozen
from tests.support.workspace import Workspace, multiset

pytest_plugins = ("tests.fixtures.postgres",)

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: event.ddl}
state: {partitions: 2}
"""
FILES = {"event_ddl": "n INT", "transform_sql": "SELECT n FROM events"}


def _land(workspace: Workspace, wave: int) -> None:
    for file in (1, 2):
        n = 10 * wave + file
        workspace.land_json(f"landing/events/{n}.json", [{"n": n}], mtime=n)


def _settled(workspace: Workspace, metastore: Metastore, waves: int) -> None:
    assert multiset(workspace.delta("tables/out")) == Counter(
        {(10 * wave + file,): 1 for wave in range(waves) for file in (1, 2)}
    )
    assert metastore.holder_of("out") is None
    batches = metastore.batches("out", 1)
    assert {batch.status for batch in batches} == {"published"}
    noted = metastore.staged_files("out", 1, [batch.batch_id for batch in batches])
    assert sum(file.rows for _, file in noted) == 2 * waves
    assert workspace.drain("out")[0].run is None


@pytest.mark.fault("F37", "delta")
def test_a_locked_metastore_stops_a_run_and_the_next_goes_on(tmp_path: Path, spark: SparkSession) -> None:
    workspace = Workspace(tmp_path / "project", spark)
    _keep_records_in(workspace, "sqlite:///metastore.db?timeout=2")
    workspace.pipeline("out", SPEC, **FILES)
    _land(workspace, 0)
    workspace.run("out")
    _land(workspace, 1)
    database = workspace.root / "metastore.db"
    with frozen(workspace, "out", "after batch.stage 1") as sleeper:
        other = sqlite3.connect(database, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        code, printed = sleeper.wake()
        assert (code, "metastore.locked" in printed, "Traceback" in printed) == (5, True, False), printed
        assert len(workspace.delta("tables/out")) == 2
        before = workspace.everything()
        error = _refused(workspace)
        assert error == "metastore.locked"
        assert workspace.everything() == before
        other.execute("ROLLBACK")
        other.close()
    with workspace.metastore() as metastore:
        _free(metastore)
        workspace.run("out")
        _settled(workspace, metastore, 2)


@pytest.mark.fault("F37", "delta")
def test_a_metastore_on_postgresql_that_is_gone_stops_a_run_and_the_next_goes_on(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresServer() as server:
        workspace = _recorded_in(server, Workspace(tmp_path / "project", spark), monkeypatch)
        for wave, moment in enumerate(["after batch.stage 1", "before publish.commit"]):
            _land(workspace, wave)
            with frozen(workspace, "out", moment) as sleeper:
                server.stop()
                code, printed = sleeper.wake()
            assert (code, "metastore.unreachable" in printed) == (5, True), printed
            assert "Traceback" not in printed
            assert server.password not in printed
            assert len(workspace.delta("tables/out")) == 2 * wave
            assert _refused(workspace) == "metastore.unreachable"
            server.start()
            with workspace.metastore() as metastore:
                _free(metastore)
                workspace.run("out")
                _settled(workspace, metastore, wave + 1)


@pytest.mark.full
@pytest.mark.fault("F04", "delta")
@pytest.mark.fault("F37", "delta")
def test_a_drain_that_dies_goes_on_from_its_records_on_postgresql(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, postgres_server: PostgresServer
) -> None:
    workspace = _recorded_in(postgres_server, Workspace(tmp_path / "project", spark), monkeypatch)
    for wave, moment in enumerate(["after batch.note 2", "after publish.commit"]):
        _land(workspace, wave)
        job = run_apart(workspace, "out", f"kill {moment}")
        assert job.returncode == -signal.SIGKILL, job.stdout
        with workspace.metastore() as metastore:
            assert metastore.runs("out")[0].state == "running"
            _free(metastore)
            workspace.run("out")
            assert [run.state for run in metastore.runs("out")][:2] == ["succeeded", "crashed"]
            _settled(workspace, metastore, wave + 1)


def _recorded_in(server: PostgresServer, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The pipeline `out`, with its records on a database of its own."""
    url = server.create_database().replace("postgresql:", "postgresql+psycopg:")
    monkeypatch.setenv("DRAWDOWN_TEST_METASTORE", url)
    _keep_records_in(workspace, '"${DRAWDOWN_TEST_METASTORE}"')
    workspace.pipeline("out", SPEC, **FILES)
    return workspace


def _keep_records_in(workspace: Workspace, url: str) -> None:
    project = workspace.root / "include" / "project.yaml"
    project.write_text(project.read_text().replace("sqlite:///metastore.db", url))


def _refused(workspace: Workspace) -> str:
    """The id of the error of a run that cannot even begin."""
    try:
        report = workspace.drain("out")[0]
    except DrawdownError as error:
        return error.id
    assert report.error is not None
    return report.error.id


def _free(metastore: Metastore) -> None:
    """Instead of waiting for the time-to-live of a holder that could not give its lease back."""
    held = metastore.holder_of("out")
    if held is not None:
        metastore.release(held)
