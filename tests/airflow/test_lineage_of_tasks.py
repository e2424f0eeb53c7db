"""Lineage events of Airflow's tasks: the parent, the key from a connection, the provider's transport."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from dev.test_programs import PROVIDERS
from drawdown.airflow.lineage_parent import lineage_parent
from drawdown.airflow.logins import look_up
from drawdown.credentials import AIRFLOWS_LINEAGE, CREDENTIALS, LINEAGE_KEY, Login, collect, hand_over
from drawdown.spec import load_project
from tests.support.dag_project import DagProject
from tests.support.dag_runs import Runs
from tests.support.lineage_server import LineageServer, check_event, lineage_server
from tests.support.spark import ROOT

pytestmark = pytest.mark.capability("SEE-13")

KEY = "hush-hush-0815"


def test_a_connection_that_is_not_there_ends_no_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    project = load_project(DagProject(tmp_path, "lineage: {url: 'http://x', connection: missing}").root)
    assert look_up(project, []) == {}
    assert "lineage: no login" in caplog.text
    assert collect(project, [], {}).lineage.api_key is None


def test_key_and_transport_reach_the_driver_in_the_private_file(tmp_path: Path) -> None:
    project = load_project(DagProject(tmp_path, "lineage: {url: 'http://x', connection: c}").root)
    logins = {LINEAGE_KEY: Login("", SecretStr(KEY)), AIRFLOWS_LINEAGE: Login("", SecretStr('{"a": 1}'))}
    file = hand_over(logins, tmp_path)
    known = collect(project, [], {CREDENTIALS: str(file)})
    assert known.lineage.api_key is not None
    assert known.lineage.api_key.get_secret_value() == KEY
    assert known.airflows_lineage is not None
    assert known.airflows_lineage.get_secret_value() == '{"a": 1}'
    assert not file.exists()
    assert KEY not in repr(known)


def test_whatever_is_wrong_with_lineage_the_task_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    project = load_project(DagProject(tmp_path, "lineage: {url: 'http://x'}").root)
    assert lineage_parent(project, {}) == {}  # type: ignore[typeddict-item]
    assert "lineage: the task is not named as parent (KeyError)" in caplog.text


@pytest.mark.full
def test_with_the_provider_its_ids_and_its_transport_are_used(tmp_path: Path) -> None:
    project = DagProject(tmp_path / "project")
    transport = {"type": "http", "url": "http://marquez:5000", "auth": {"type": "api_key", "apiKey": KEY}}
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.provider_lineage", str(PROVIDERS), str(project.root)],
        cwd=ROOT,
        env={
            **os.environ,
            "AIRFLOW_HOME": str(tmp_path / "airflow"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__OPENLINEAGE__NAMESPACE": "prod",
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
            "OPENLINEAGE_NAMESPACE": "prod",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["without"] == {}
    assert list(found["given"].values()) == found["of_provider"]
    assert found["computed"] == found["given"], "the ids are the provider's also where it is missing"
    assert found["transport"] == {"transport": transport, "namespace": "prod"}
    assert KEY not in found["shown"]


@pytest.fixture
def server() -> Iterator[LineageServer]:
    with lineage_server() as found:
        yield found


@pytest.mark.full
@pytest.mark.timeout(400)
def test_a_dag_run_sends_events_under_its_task_and_its_key_is_nowhere_else(
    tmp_path: Path, server: LineageServer
) -> None:
    more = f"lineage: {{url: '{server.url}', connection: lineage_key, namespace: test}}"
    project = DagProject(tmp_path / "project", more, retries=0)
    project.pipeline("events")
    landing = project.storage / "landing" / "events"
    landing.mkdir(parents=True)
    (landing / "1.json").write_text('{"id": 1, "name": "one"}\n')
    connection = json.dumps({"conn_type": "http", "password": KEY})
    runs = Runs(project, tmp_path / "airflow", {"AIRFLOW_CONN_LINEAGE_KEY": connection})
    try:
        task = runs.start("events")
        runs.wait_for("spark: starting", task)
        commands = [Path(f"/proc/{pid}/cmdline").read_text() for pid in runs.processes()]
        task.wait(300)
    finally:
        for pid in runs.processes():
            os.kill(pid, signal.SIGKILL)
    log = runs.log.read_text()
    assert runs.states("events")["publish"] == "success", log[-4000:]

    begun, done = server.events
    assert (begun["eventType"], done["eventType"]) == ("START", "COMPLETE")
    for event in (begun, done):
        check_event(event)
        parent = event["run"]["facets"]["parent"]
        assert (parent["job"]["namespace"], parent["job"]["name"]) == ("default", "events.drain")
        assert parent["root"]["job"]["name"] == "events"
    assert server.keys == {f"Bearer {KEY}"}
    assert KEY not in log
    assert not [command for command in commands if KEY in command]
    kept = [path for path in project.root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]
