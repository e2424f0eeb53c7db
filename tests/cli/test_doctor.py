"""`drawdown doctor` names what a machine does not show by itself, and the command that fixes it."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from sqlalchemy import create_engine

from drawdown.cli.doctor.store import storage
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run
from drawdown.testing.servers.postgres import PostgresServer
from tests.support.command_line import answer, drawdown
from tests.support.sandbox import Sandbox

SPEC = """
sources: {events: {format: json, path: landing/events, schema: events.ddl}}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: events.ddl}
"""
LOGIN = """  secured:
    bootstrap_servers: localhost:1
    security_protocol: SASL_SSL
    sasl_mechanism: PLAIN
    connection: kafka_login
"""


@pytest.fixture
def project(tmp_path: Path) -> Sandbox:
    sandbox = Sandbox(tmp_path / "project")
    sandbox.pipeline("events", SPEC, events_ddl="id BIGINT", transform_sql="SELECT id FROM events")
    return sandbox


def findings(project: Sandbox, about: str) -> list[tuple[str, str, str]]:
    """Level, what, do."""
    found = answer(drawdown(project.root, "doctor", "--json").stdout)
    return [(each["level"], each["what"], each["do"]) for each in found if each["about"] == about]


@pytest.mark.full
def test_a_metastore_that_is_an_hour_ahead(
    project: Sandbox, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [level for level, _, _ in findings(project, "clocks")] == ["ok", "ok"]
    url = postgres_server.create_database().replace("postgresql://", "postgresql+psycopg://")
    Metastore.open(url).close()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql"
            " AS 'SELECT pg_catalog.clock_timestamp() + interval ''1 hour'''"
        )
        connection.exec_driver_sql(
            f'ALTER DATABASE "{engine.url.database}" SET search_path = public, pg_catalog'
        )
    engine.dispose()
    file = project.root / "include" / "project.yaml"
    monkeypatch.setenv("SHOP_METASTORE", url)
    file.write_text(file.read_text().replace("sqlite:///metastore.db", "${SHOP_METASTORE}"))
    [storage, (level, what, do)] = findings(project, "clocks")
    assert storage[:2] == ("ok", "the clocks of this machine and the storage agree")
    assert (level, "ahead of this machine's" in what, do.startswith("timedatectl")) == ("warn", True, True)
    assert 3_590 < int(what.split(" is ")[1].split(" s ")[0].replace(",", "")) < 3_610


def test_a_store_whose_clock_is_behind(project: Sandbox) -> None:
    class AnHourBehind(LocalFileSystem):
        protocol = "behind"

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path.removeprefix("behind://")

        def info(self, path: str, **options: Any) -> dict[str, Any]:
            info: dict[str, Any] = super().info(path, **options)
            return {**info, "mtime": info["mtime"] - 3_600}

    fsspec.register_implementation(AnHourBehind.protocol, AnHourBehind, clobber=True)
    (project.storage / "_drawdown").mkdir()
    there = replace(project.project, storage_root=f"behind://{project.storage}")
    [writable, found] = storage(there)
    assert writable.level == "ok"
    assert (found.about, found.level) == ("clocks", "warn")
    assert "the storage's clock is 3,600 s behind this machine's" in found.what
    assert "`settle`" in found.what
    assert found.do.startswith("timedatectl")
    assert not list(project.storage.rglob("doctor-*"))


def test_a_rebuild_that_died(project: Sandbox) -> None:
    with project.metastore() as metastore:
        metastore.start_run(Run("r1", "events", kind="rebuild", holder="elsewhere pid 1"))
    assert [(level, do) for level, _, do in findings(project, "leases")] == [
        ("warn", "drawdown rebuild start events")
    ]


@pytest.mark.full
def test_a_driver_that_goes_on_although_its_run_is_dead(project: Sandbox) -> None:
    below = "subprocess.run([sys.executable, '-c', 'input()'])  # drawdown"
    driver = [sys.executable, "-c", f"import subprocess, sys; print(flush=True); {below}"]
    with subprocess.Popen(driver, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.5)  # less than any driver takes to begin a run
        with project.metastore() as metastore:
            holder = f"{socket.gethostname()} pid {process.pid}"
            metastore.start_run(Run("r1", "events", holder=holder))
            metastore.finish_run("r1", "crashed")
        [(level, what, do)] = findings(project, "drivers")
        assert (level, "r1" in what) == ("warn", True)
        assert do.split()[:3] == ["kill", "-9", str(process.pid)]
        subprocess.run(do, shell=True, check=True)
    assert process.returncode < 0
    assert findings(project, "drivers") == []


def test_a_process_that_only_has_the_number_of_a_dead_driver_is_left_alone(project: Sandbox) -> None:
    with project.metastore() as metastore:
        metastore.start_run(Run("r1", "events"))
        program = "input()  # drawdown"
        with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as process:
            metastore.finish_run("r1", "crashed", holder=f"{socket.gethostname()} pid {process.pid}")
            assert findings(project, "drivers") == []
            process.kill()


@pytest.mark.full
def test_a_login_that_airflow_does_not_have(project: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project.root / "include" / "project.yaml"
    file.write_text(file.read_text().rstrip("\n") + "\n" + LOGIN)
    [(level, what, do)] = findings(project, "connection")
    assert (level, "kafka_login" in what) == ("warn", True)
    assert do.startswith("airflow connections add kafka_login --conn-type kafka")

    database = project.root / "airflow.db"
    with sqlite3.connect(database) as airflow:
        airflow.execute("CREATE TABLE connection (conn_id VARCHAR)")
        airflow.execute("CREATE TABLE slot_pool (pool VARCHAR, slots INTEGER)")
        airflow.execute("INSERT INTO connection VALUES ('kafka_login')")
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"sqlite:///{database}")
    assert findings(project, "connection") == []
