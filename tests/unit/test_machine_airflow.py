"""The environment of a local Airflow: its own settings only, secrets nobody else can read, its database."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from dev.airflow.api import AirflowApi
from dev.airflow.environment import admin_password, airflow_environment
from dev.airflow.home import COMPONENTS, LocalAirflow
from dev.airflow.sqlite import CONNECT_ARGUMENTS
from drawdown.cli.doctor.airflow import paused
from drawdown.cli.doctor.airflow_pools import pool_slots
from drawdown.errors import MachineError
from drawdown.spec import load_project
from tests.support.dag_project import DagProject


def test_settings_of_another_airflow_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setenv("AIRFLOW__SMTP__SMTP_HOST", "mail.example.org")
    environment = airflow_environment(tmp_path, tmp_path / "home", 8080)
    assert environment["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert "AIRFLOW__SMTP__SMTP_HOST" not in environment


def test_the_spark_connection_is_a_local_master(tmp_path: Path) -> None:
    environment = airflow_environment(tmp_path, tmp_path / "home", 8080)
    connection = json.loads(environment["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert (connection["conn_type"], connection["host"]) == ("spark", "local[*]")


def test_secrets_are_private_and_the_same_next_time(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first, second = (airflow_environment(tmp_path, home, 8080) for _ in range(2))
    assert first == second
    assert {file.name for file in home.iterdir()} == {"keys.json", "passwords.json"}
    assert all(file.stat().st_mode & 0o077 == 0 for file in (home, *home.iterdir()))


def test_two_homes_have_different_secrets(tmp_path: Path) -> None:
    one, other = (airflow_environment(tmp_path, tmp_path / name, 8080) for name in ("one", "other"))
    for secret in ("CORE__FERNET_KEY", "API_AUTH__JWT_SECRET", "API__SECRET_KEY"):
        assert one[f"AIRFLOW__{secret}"] != other[f"AIRFLOW__{secret}"]
    assert admin_password(tmp_path / "one") != admin_password(tmp_path / "other")


def test_extra_variables_win(tmp_path: Path) -> None:
    environment = airflow_environment(tmp_path, tmp_path / "home", 8080, {"AIRFLOW__CORE__PARALLELISM": "9"})
    assert environment["AIRFLOW__CORE__PARALLELISM"] == "9"


def test_what_is_read_in_a_savepoint_may_be_written_in_it(tmp_path: Path) -> None:
    """SQLite alone lets another process write in between, and then refuses the write."""
    ours = sqlite3.connect(tmp_path / "airflow.db", **CONNECT_ARGUMENTS)
    ours.execute("PRAGMA journal_mode=WAL")
    ours.execute("CREATE TABLE t (x)")
    another = sqlite3.connect(tmp_path / "airflow.db", timeout=0)
    cursor = ours.cursor()
    cursor.execute("SAVEPOINT one")
    cursor.execute("SELECT * FROM t").fetchall()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        another.execute("INSERT INTO t VALUES (1)")
    another.rollback()
    cursor.execute("INSERT INTO t VALUES (2)")
    cursor.execute("RELEASE one")
    ours.commit()
    another.execute("INSERT INTO t VALUES (3)")
    another.commit()
    assert ours.execute("SELECT x FROM t ORDER BY x").fetchall() == [(2,), (3,)]


def test_an_airflow_that_does_not_run_is_no_answer() -> None:
    api = AirflowApi(1, "admin", "password")
    with pytest.raises(MachineError) as caught:
        api.call("GET", "dags")
    assert (caught.value.id, caught.value.where) == (
        "airflow.unreachable",
        "POST http://127.0.0.1:1/auth/token",
    )
    assert api.health() is None


def test_components_that_do_not_get_well_are_waited_for_no_longer_than_said(tmp_path: Path) -> None:
    airflow = LocalAirflow(tmp_path, tmp_path / "home", port=1)
    for name, component in airflow._components.items():
        component.start(["sleep", "600"], airflow.environment)
        assert component.pid() is not None, name
    try:
        with pytest.raises(MachineError, match="waited 0 s: not healthy: None") as caught:
            airflow.wait_healthy(timeout=0.0)
    finally:
        airflow.stop()
    assert caught.value.id == "airflow.timeout"


def test_a_file_that_is_no_database_of_airflow_is_said_to_be_unreadable(tmp_path: Path) -> None:
    (tmp_path / "airflow.db").write_text("no database, by its first bytes")
    with pytest.raises(MachineError) as caught:
        pool_slots(f"sqlite:///{tmp_path}/airflow.db", "drawdown")
    assert (caught.value.id, caught.value.do) == ("airflow.database", "airflow db check")


def test_the_doctor_names_scheduled_dags_that_are_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = DagProject(tmp_path / "project")
    for name in ("new", "running", "unknown"):
        project.pipeline(name, 'schedule: "@hourly"')
    project.pipeline("by_hand")
    project.pipeline("member", 'schedule: "@hourly"\ngroup: together')
    with sqlite3.connect(tmp_path / "airflow.db") as database:
        database.execute("CREATE TABLE dag (dag_id TEXT, is_paused BOOLEAN)")
        database.execute("INSERT INTO dag VALUES ('new', 1), ('running', 0), ('by_hand', 1), ('together', 1)")
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"sqlite:///{tmp_path / 'airflow.db'}")
    found = list(paused(load_project(project.root)))
    assert [(check.about, check.level, check.do) for check in found] == [
        ("dag", "warn", "airflow dags unpause new"),
        ("dag", "warn", "airflow dags unpause together"),
    ]


def test_a_triggerer_starts_only_where_it_is_asked_for(tmp_path: Path) -> None:
    assert "triggerer" not in LocalAirflow(tmp_path, tmp_path / "home").starts
    shown = LocalAirflow(tmp_path, tmp_path / "home", triggerer=True)
    assert shown.starts == list(COMPONENTS), "and `make down` stops each of them"
