"""`airflow dags test` in a home of its own, its processes, and what Airflow's database says afterwards."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from dev.airflow.home import LocalAirflow
from tests.support.dag_project import DagProject


class Runs:
    """Runs of one project's DAGs."""

    def __init__(self, project: DagProject, home: Path, environment: dict[str, str] | None = None) -> None:
        self.project = project
        extra = {"DRAWDOWN_STOP_GRACE": "20", **(environment or {})}
        self.airflow = LocalAirflow(project.root, home, extra_env=extra)
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
        return processes_of(self.project.root)

    def wait_until_gone(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while left := self.processes():
            assert time.monotonic() < deadline, left
            time.sleep(0.05)


def processes_of(root: Path) -> list[int]:
    """Every process that was started for the project in a folder."""
    mark = f"DRAWDOWN_PROJECT={root}\0".encode()
    found = []
    for environ in (process / "environ" for process in Path("/proc").glob("[0-9]*")):
        try:
            if mark in environ.read_bytes():
                found.append(int(environ.parent.name))
        except OSError:
            continue
    return found
