"""The metastore is locked or gone: a run does not start, or stops before its next commit; nothing is lost."""

from __future__ import annotations

import signal
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore
from drawdown.testing.servers.postgres import PostgresServer
from tests.support.deaths import run_apart
from tests.support.frozen import frozen
from tests.support.sandbox import Sandbox, multiset

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: event.ddl}
state: {partitions: 2}
"""
FILES = {"event_ddl": "n INT", "transform_sql": "SELECT n FROM events"}


def _land(sandbox: Sandbox, wave: int) -> None:
    for file in (1, 2):
        n = 10 * wave + file
        sandbox.land_json(f"landing/events/{n}.json", [{"n": n}], mtime=n)


def _settled(sandbox: Sandbox, metastore: Metastore, waves: int) -> None:
    assert multiset(sandbox.delta("tables/out")) == Counter(
        {(10 * wave + file,): 1 for wave in range(waves) for file in (1, 2)}
    )
    assert metastore.holder_of("out") is None
    batches = metastore.batches("out", 1)
    assert {batch.status for batch in batches} == {"published"}
    noted = metastore.staged_files("out", 1, [batch.batch_id for batch in batches])
    assert sum(file.rows for _, file in noted) == 2 * waves
    assert sandbox.drain("out")[0].run is None


@pytest.mark.fault("F37", "delta")
@pytest.mark.capability("HOST-05")
def test_a_locked_metastore_stops_a_run_and_the_next_goes_on(tmp_path: Path, spark: SparkSession) -> None:
    sandbox = Sandbox(tmp_path / "project", spark)
    _keep_records_in(sandbox, "sqlite:///metastore.db?timeout=2")
    sandbox.pipeline("out", SPEC, **FILES)
    _land(sandbox, 0)
    sandbox.run("out")
    _land(sandbox, 1)
    database = sandbox.root / "metastore.db"
    with frozen(sandbox, "out", "after batch.stage 1") as sleeper:
        other = sqlite3.connect(database, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        code, printed = sleeper.wake()
        assert (code, "metastore.locked" in printed, "Traceback" in printed) == (5, True, False), printed
        assert len(sandbox.delta("tables/out")) == 2
        before = sandbox.everything()
        error = _refused(sandbox)
        assert error == "metastore.locked"
        assert sandbox.everything() == before
        other.execute("ROLLBACK")
        other.close()
    with sandbox.metastore() as metastore:
        _free(metastore)
        sandbox.run("out")
        _settled(sandbox, metastore, 2)


@pytest.mark.full
@pytest.mark.fault("F37", "delta")
def test_a_metastore_on_postgresql_that_is_gone_stops_a_run_and_the_next_goes_on(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresServer() as server:
        sandbox = _recorded_in(server, Sandbox(tmp_path / "project", spark), monkeypatch)
        for wave, moment in enumerate(["after batch.stage 1", "before publish.commit"]):
            _land(sandbox, wave)
            with frozen(sandbox, "out", moment) as sleeper:
                server.stop()
                code, printed = sleeper.wake()
            assert (code, "metastore.unreachable" in printed) == (5, True), printed
            assert "Traceback" not in printed
            assert server.password not in printed
            assert len(sandbox.delta("tables/out")) == 2 * wave
            assert _refused(sandbox) == "metastore.unreachable"
            server.start()
            with sandbox.metastore() as metastore:
                _free(metastore)
                sandbox.run("out")
                _settled(sandbox, metastore, wave + 1)


@pytest.mark.full
@pytest.mark.fault("F04", "delta")
@pytest.mark.fault("F37", "delta")
def test_a_drain_that_dies_goes_on_from_its_records_on_postgresql(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, postgres_server: PostgresServer
) -> None:
    sandbox = _recorded_in(postgres_server, Sandbox(tmp_path / "project", spark), monkeypatch)
    for wave, moment in enumerate(["after batch.note 2", "after publish.commit"]):
        _land(sandbox, wave)
        job = run_apart(sandbox, "out", f"kill {moment}")
        assert job.returncode == -signal.SIGKILL, job.stdout
        with sandbox.metastore() as metastore:
            assert metastore.runs("out")[0].state == "running"
            _free(metastore)
            sandbox.run("out")
            assert [run.state for run in metastore.runs("out")][:2] == ["succeeded", "crashed"]
            _settled(sandbox, metastore, wave + 1)


def _recorded_in(server: PostgresServer, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """The pipeline `out`, with its records on a database of its own."""
    url = server.create_database().replace("postgresql:", "postgresql+psycopg:")
    monkeypatch.setenv("DRAWDOWN_TEST_METASTORE", url)
    _keep_records_in(sandbox, '"${DRAWDOWN_TEST_METASTORE}"')
    sandbox.pipeline("out", SPEC, **FILES)
    return sandbox


def _keep_records_in(sandbox: Sandbox, url: str) -> None:
    project = sandbox.root / "include" / "project.yaml"
    project.write_text(project.read_text().replace("sqlite:///metastore.db", url))


def _refused(sandbox: Sandbox) -> str:
    """The id of the error of a run that cannot even begin."""
    try:
        report = sandbox.drain("out")[0]
    except DrawdownError as error:
        return error.id
    assert report.error is not None
    return report.error.id


def _free(metastore: Metastore) -> None:
    """Instead of waiting for the time-to-live of a holder that could not give its lease back."""
    held = metastore.holder_of("out")
    if held is not None:
        metastore.release(held)
