"""Real runs by `airflow dags test`: real tasks, a real spark-submit behind them, real rows."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drawdown.machine.airflow_home import LocalAirflow
from drawdown.metastore import Metastore
from tests.support.dag_project import DagProject

pytestmark = pytest.mark.timeout(600)

FAILS_ON_TWO = """
expectations:
  - {type: expect_column_values_to_not_be_in_set, kwargs: {column: id, value_set: [2]}}
"""


class Runs:
    """`airflow dags test` in a home of its own, and what Airflow's database says afterwards."""

    def __init__(self, project: DagProject, home: Path) -> None:
        self.project = project
        self.airflow = LocalAirflow(project.root, home, extra_env={"DRAWDOWN_STOP_GRACE": "20"})
        self.airflow.prepare()

    def start(self, dag_id: str) -> subprocess.Popen[bytes]:
        self.log = self.project.root / f"run-{time.monotonic_ns()}.log"
        with self.log.open("wb") as stream:
            return subprocess.Popen(
                [sys.executable, "-m", "airflow", "dags", "test", dag_id],
                env=self.airflow.environment,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )

    def run(self, dag_id: str) -> dict[str, str]:
        """Task id -> state of one run to its end."""
        self.start(dag_id).wait(300)
        return self.states(dag_id)

    def states(self, dag_id: str) -> dict[str, str]:
        """Task states of the last run of a DAG."""
        rows = self.query(
            "select task_id, state from task_instance where dag_id = ? and run_id ="
            " (select run_id from dag_run where dag_id = ? order by id desc limit 1)",
            dag_id,
            dag_id,
        )
        return {str(task): str(state) for task, state in rows}

    def query(self, sql: str, *values: str) -> list[tuple[object, ...]]:
        with sqlite3.connect(self.airflow.home / "airflow.db", timeout=30) as database:
            return database.execute(sql, values).fetchall()

    def wait_for(self, text: str, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + 240
        while text not in self.log.read_text():
            assert process.poll() is None, self.log.read_text()[-4000:]
            assert time.monotonic() < deadline, self.log.read_text()[-4000:]
            time.sleep(0.05)

    def processes(self) -> list[int]:
        """Every process that was started for this project, whoever its parent is by now."""
        mark = f"DRAWDOWN_PROJECT={self.project.root}\0".encode()
        found = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in environ.read_bytes():
                    found.append(int(environ.parent.name))
            except OSError:
                continue
        return found

    def wait_until_gone(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while left := self.processes():
            assert time.monotonic() < deadline, left
            time.sleep(0.05)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("airflow")


@pytest.fixture
def runs(tmp_path: Path, home: Path) -> Iterator[Runs]:
    runs = Runs(DagProject(tmp_path / "project"), home)
    yield runs
    for pid in runs.processes():
        os.kill(pid, signal.SIGKILL)


def test_a_run_drains_audits_and_publishes_and_the_next_starts_no_spark(runs: Runs) -> None:
    runs.project.pipeline("events")
    runs.project.land("events", 1, 2, 3)

    assert set(runs.run("events").values()) == {"success"}
    assert runs.project.ids("events") == [1, 2, 3]
    [[text]] = runs.query("select extra from asset_event order by id desc limit 1")
    event = json.loads(str(text))
    assert event["rows"] == 3
    assert event["batch_ids"] == [0, 2]
    assert event["verdict"] == "pass"
    with Metastore.open(f"sqlite:///{runs.project.root / 'metastore.db'}") as metastore:
        [run] = metastore.runs("events")
    assert (run.state, run.origin["dag_id"], run.origin["try_number"]) == ("succeeded", "events", 1)
    links = runs.query("select count(*) from xcom where key = '_link_RunRecordLink' and dag_id = 'events'")
    assert links == [(3,)]

    assert runs.run("events") == {
        "preflight": "success",
        "drain": "skipped",
        "audit": "skipped",
        "publish": "skipped",
    }
    assert "spark: starting" not in runs.log.read_text()
    assert list((runs.project.root / ".drawdown" / "runs").iterdir()) == []


def test_in_a_group_one_failing_audit_holds_only_its_own_rows(runs: Runs) -> None:
    runs.project.pipeline("bad", "group: both", quality=FAILS_ON_TWO)
    runs.project.pipeline("good", "group: both", quality=FAILS_ON_TWO)
    runs.project.pipeline("idle", "group: both")
    runs.project.land("bad", 1, 2)
    runs.project.land("good", 1, 3)
    (runs.project.storage / "landing" / "idle").mkdir()

    assert runs.run("both") == {
        "preflight": "success",
        "drain": "failed",
        "bad.audit": "failed",
        "bad.publish": "upstream_failed",
        "good.audit": "success",
        "good.publish": "success",
        "idle.audit": "skipped",
        "idle.publish": "skipped",
    }
    assert runs.project.ids("bad") == []
    assert runs.project.ids("good") == [1, 3]
    assert "AuditFailed, a retry would meet it again" in runs.log.read_text()
    assert "audit of bad: fail" in runs.log.read_text()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_task_that_is_ended_leaves_no_process_and_loses_nothing(runs: Runs, how: signal.Signals) -> None:
    runs.project.pipeline("events")
    runs.project.land("events", *range(1, 13))
    task = runs.start("events")
    runs.wait_for("events: batch 3:", task)

    # SIGTERM comes to the whole group, as from Airflow's supervisor; SIGKILL only to the task.
    if how is signal.SIGTERM:
        os.killpg(task.pid, how)
        time.sleep(5)
    task.kill()
    task.wait()
    runs.wait_until_gone(30)
    with Metastore.open(f"sqlite:///{runs.project.root / 'metastore.db'}") as metastore:
        [ended] = metastore.runs("events")
        assert metastore.holder_of("events") is None
    assert ended.state == "stopped"

    assert set(runs.run("events").values()) == {"success"}
    assert runs.project.ids("events") == list(range(1, 13))
