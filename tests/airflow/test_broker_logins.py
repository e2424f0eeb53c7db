"""A broker's login that stands in an Airflow connection reaches the driver, and nobody else."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from drawdown.airflow.logins import look_up
from drawdown.credentials import CREDENTIALS, Login, collect, hand_over
from drawdown.errors import SpecError
from drawdown.metastore import Metastore
from drawdown.spec import load_pipeline, load_project
from tests.support.dag_project import ROOT, DagProject
from tests.support.dag_runs import Runs
from tests.support.login_broker import LoginBroker
from tests.support.topics import Topic

PASSWORD = "correct-horse-battery"
BROKER = """
brokers:
  default:
    bootstrap_servers: "{servers}"
    security_protocol: SASL_PLAINTEXT
    sasl_mechanism: PLAIN
    connection: kafka_login
"""
KAFKA_PIPELINE = """
sources:
  events: {format: kafka, schema: schemas/events.ddl, options: {subscribe: events}}
sink: {format: delta, path: tables/events, schema: schemas/events.ddl, publish: audited}
"""


@pytest.fixture
def project(tmp_path: Path) -> DagProject:
    return project_of(tmp_path, "localhost:1")


def project_of(folder: Path, servers: str) -> DagProject:
    project = DagProject(folder / "project", more=BROKER.format(servers=servers), retries=0)
    (project.pipeline("events") / "pipeline.yaml").write_text(KAFKA_PIPELINE)
    return project


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    """Of a project whose broker takes this login and has one record waiting."""
    connection = {"conn_type": "kafka", "login": "reader", "password": PASSWORD}
    with LoginBroker(tmp_path / "kafka", "reader", PASSWORD, state_dir=ROOT / ".drawdown") as broker:
        Topic(broker, "events").write([json.dumps({"id": 1, "name": "event 1"})])
        project = project_of(tmp_path, broker.login_servers)
        runs = Runs(project, tmp_path / "airflow", {"AIRFLOW_CONN_KAFKA_LOGIN": json.dumps(connection)})
        yield runs
        for pid in runs.processes():
            os.kill(pid, signal.SIGKILL)


def test_the_driver_finds_the_login_in_a_private_file_and_removes_it(
    project: DagProject, tmp_path: Path
) -> None:
    loaded = load_project(project.root)
    pipelines = [load_pipeline(loaded, "events")]
    path = hand_over({"brokers.default": Login("reader", SecretStr(PASSWORD))}, tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    broker = collect(loaded, pipelines, {CREDENTIALS: str(path)}).brokers["default"]
    assert broker.username == "reader"
    assert broker.password is not None
    assert broker.password.get_secret_value() == PASSWORD
    assert PASSWORD not in repr(broker)
    assert not path.exists()


def test_without_airflow_a_broker_with_a_connection_says_what_to_do(project: DagProject) -> None:
    loaded = load_project(project.root)
    with pytest.raises(SpecError, match="Airflow connection 'kafka_login'") as error:
        collect(loaded, [load_pipeline(loaded, "events")], {})
    assert error.value.id == "credentials.missing"


def test_a_connection_that_is_not_there_or_has_no_password_is_named(
    project: DagProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_project(project.root)
    pipelines = [load_pipeline(loaded, "events")]
    with pytest.raises(SpecError, match="'kafka_login', which does not exist") as error:
        look_up(loaded, pipelines)
    assert error.value.id == "airflow.no-connection"
    assert error.value.do.startswith("airflow connections add kafka_login --conn-type kafka")
    half = json.dumps({"conn_type": "kafka", "login": "reader"})
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_LOGIN", half)
    with pytest.raises(SpecError) as error:
        look_up(loaded, pipelines)
    assert error.value.id == "airflow.no-login"
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_LOGIN", half.replace("}", f', "password": "{PASSWORD}"}}'))
    assert look_up(loaded, pipelines)["brokers.default"].username == "reader"


@pytest.mark.full
@pytest.mark.timeout(300)
def test_the_password_is_in_no_log_database_or_command_line(runs: Runs) -> None:
    # Somebody else holds the lease, so the drain ends soon after Spark has started, with its own error.
    with Metastore.open(f"sqlite:///{runs.project.root / 'metastore.db'}") as metastore:
        metastore.acquire("events", "another-host:1", "another-run", timedelta(minutes=10))
    task = runs.start("events")
    runs.wait_for("spark: starting", task)
    commands = [Path(f"/proc/{pid}/cmdline").read_text() for pid in runs.processes()]
    assert any("org.apache.spark.deploy.SparkSubmit" in command for command in commands)
    task.wait(200)

    log = runs.log.read_text()
    assert "another-host:1" in log
    assert runs.states("events")["drain"] == "failed"
    assert PASSWORD not in log
    assert not [command for command in commands if PASSWORD in command]
    assert PASSWORD.encode() not in (runs.airflow.home / "airflow.db").read_bytes()
    kept = [path for path in runs.project.root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in kept if PASSWORD.encode() in path.read_bytes()]
