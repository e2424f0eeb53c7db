"""A local Airflow: api-server, scheduler and dag-processor as guarded background processes.

``airflow standalone`` takes 38 s to be ready on two cores. This takes about 9 s for a new home and 6 s
for one that is there: the database is made by one process, the components start at once, there is no example
DAG and one api worker. Nothing here defers, so the triggerer starts only where somebody looks: Airflow's home
page is red without one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from dev.airflow.api import AirflowApi
from dev.airflow.environment import USER, admin_password, airflow_environment
from drawdown.errors import MachineError
from drawdown.processes.background import Background, last_lines
from drawdown.processes.ports import LOOPBACK, free_ports

COMPONENTS = {
    "api-server": ["api-server"],
    # Task logs are files in the same home: the log server (a fixed port, 8793) has nobody to serve.
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
}
FINISHED = frozenset({"success", "failed"})
START_TIMEOUT = 120.0
PARSE_TIMEOUT = 60.0

T = TypeVar("T")


class LocalAirflow:
    """One local Airflow in ``home``; as a context manager it is started and stopped.

    Args:
        project_root: the project whose ``dags/`` it serves.
        home: AIRFLOW_HOME: SQLite database, logs, keys; kept between starts.
        port: of the api-server on 127.0.0.1; a free one if not given.
        extra_env: environment variables for all its processes, so also for tasks; they win.
        triggerer: whether to start one.
        prefix: the path of its address, as behind a proxy: `/team/airflow`.
    """

    def __init__(
        self,
        project_root: Path,
        home: Path,
        port: int | None = None,
        extra_env: Mapping[str, str] | None = None,
        *,
        triggerer: bool = False,
        prefix: str = "",
    ) -> None:
        self.project_root = project_root.resolve()
        self.home = home.resolve()
        self.port = port or free_ports(1)[0]
        self.url = f"http://{LOOPBACK}:{self.port}{prefix}"
        self.user = USER
        self.password = admin_password(self.home)
        addresses = {
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
        }
        extra_env = {**addresses, **(extra_env or {})}
        self.environment = airflow_environment(self.project_root, self.home, self.port, extra_env)
        self.api = AirflowApi(self.port, self.user, self.password, prefix)
        self._components = _components(self.home)
        self.starts = [name for name in COMPONENTS if triggerer or name != "triggerer"]

    def __enter__(self) -> LocalAirflow:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def prepare(self) -> None:
        """Make or migrate the database and the pool; free when this Airflow version did it before.

        Enough for ``airflow dags test`` and ``airflow tasks`` with ``environment``, without a start.
        """
        slots = max(1, (os.cpu_count() or 2) // 2)
        wanted = f"{version('apache-airflow')} {slots}"
        stamp = self.home / "database.version"
        if stamp.exists() and stamp.read_text() == wanted:
            return
        log = self.home / "run" / "database.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stream:
            command = [sys.executable, "-m", "dev.airflow.database", str(slots)]
            done = subprocess.run(command, env=self.environment, stdout=stream, stderr=stream, check=False)
        if done.returncode:
            raise MachineError(
                "airflow.database",
                f"Airflow's database could not be brought up to date: {last_lines(log)}",
                where=str(log),
                do=f"read that log; if the database may go, remove {self.home} and start again",
            )
        stamp.write_text(wanted)

    def start(self, *, detached: bool = False) -> None:
        """Start and wait until all components are healthy; on any failure nothing is left running.

        Unless ``detached``, Airflow ends when this process does, however it ends.
        Raises MachineError ``machine.running``, ``machine.died``, ``airflow.database``, ``airflow.timeout``.
        """
        self.prepare()
        started: list[Background] = []
        try:
            for name in self.starts:
                component, command = (
                    self._components[name],
                    [sys.executable, "-m", "airflow", *COMPONENTS[name]],
                )
                component.start(command, self.environment, detached=detached)
                started.append(component)
            self.wait_healthy()
        except BaseException:
            for component in started:
                component.stop()
            raise
        _state_file(self.home).write_text(json.dumps({"port": self.port}))

    def wait_healthy(self, timeout: float = START_TIMEOUT) -> None:
        """Wait for the database and what was started to say they are healthy."""
        _poll(self._healthy, timeout, lambda: f"not healthy: {self.api.health()}", self.home / "run")

    def stop(self) -> None:
        """Stop every component and every task below; nothing is left. Harmless when nothing runs."""
        _stop(self._components.values(), self.home)

    def unpause(self, dag_id: str) -> None:
        """Let the DAG run; waits until it has been parsed."""
        self._when_parsed(dag_id, lambda: self.api.call("PATCH", "dags", dag_id, body={"is_paused": False}))

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None) -> str:
        """Start a manual run (no logical date) once the DAG has been parsed; returns its run id."""
        body = {"logical_date": None, "conf": dict(conf or {})}
        answer = self._when_parsed(
            dag_id, lambda: self.api.call("POST", "dags", dag_id, "dagRuns", body=body)
        )
        return str(answer["dag_run_id"])

    def state(self, dag_id: str, run_id: str) -> str | None:
        """State of a DAG run: queued, running, success or failed; None if there is no such run."""
        run = self.api.call("GET", "dags", dag_id, "dagRuns", run_id)
        return None if run is None else str(run["state"])

    def wait(self, dag_id: str, run_id: str, timeout: float) -> str:
        """Wait for the end of a run: ``success`` or ``failed``; MachineError ``airflow.timeout``."""

        def finished() -> str | None:
            state = self.state(dag_id, run_id)
            return state if state in FINISHED else None

        def found() -> str:
            return f"run {run_id} of {dag_id} has not ended: {self.task_states(dag_id, run_id)}"

        return _poll(finished, timeout, found, self.home)

    def runs(self, dag_id: str) -> dict[str, str]:
        """Run id -> state of all runs of a DAG, oldest first, whoever started them."""
        answer = self.api.call("GET", "dags", dag_id, "dagRuns", order_by="run_after", limit=100)
        return {run["dag_run_id"]: run["state"] for run in (answer or {"dag_runs": []})["dag_runs"]}

    def task_states(self, dag_id: str, run_id: str) -> dict[str, str | None]:
        """Task id -> state (None: not looked at yet) of a DAG run."""
        return {task["task_id"]: task["state"] for task in self.task_instances(dag_id, run_id)}

    def task_seconds(self, dag_id: str, run_id: str) -> dict[str, float | None]:
        """Task id -> seconds the task ran (None: not ended or never started)."""
        return {task["task_id"]: task["duration"] for task in self.task_instances(dag_id, run_id)}

    def task_log(self, dag_id: str, run_id: str, task_id: str, try_number: int = 1) -> str:
        """The log of one try of a task, one event a line; empty if there is none."""
        path = ("dags", dag_id, "dagRuns", run_id, "taskInstances", task_id, "logs", str(try_number))
        answer = self.api.call("GET", *path, full_content="true")
        return "\n".join(_as_line(event) for event in (answer or {"content": []})["content"])

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """The task instances of a DAG run, as the API has them."""
        answer = self.api.call("GET", "dags", dag_id, "dagRuns", run_id, "taskInstances", limit=100)
        return list((answer or {"task_instances": []})["task_instances"])

    def _healthy(self) -> bool | None:
        for name in self.starts:
            self._components[name].require_alive()
        health = self.api.health() or {}
        needed = ("metadatabase", *(name.replace("-", "_") for name in self.starts if name != "api-server"))
        return all(health.get(part, {}).get("status") == "healthy" for part in needed) or None

    def _when_parsed(self, dag_id: str, call: Callable[[], Any]) -> Any:
        def found() -> str:
            errors = (self.api.call("GET", "importErrors") or {"import_errors": []})["import_errors"]
            texts = "; ".join(f"{each['filename']}: {each['stack_trace'].strip()[-300:]}" for each in errors)
            return f"there is no DAG {dag_id}" + (f"; import errors: {texts}" if texts else "")

        return _poll(call, PARSE_TIMEOUT, found, Path(self.environment["AIRFLOW__CORE__DAGS_FOLDER"]))


def stop_airflow(home: Path) -> None:
    """Stop the Airflow of ``home``, whoever started it, with all its tasks; harmless when none runs."""
    _stop(_components(home).values(), home)


def running_airflow(project_root: Path, home: Path) -> LocalAirflow | None:
    """The Airflow another process started in ``home`` (``make up``), None if none runs."""
    try:
        port = json.loads(_state_file(home).read_text())["port"]
    except FileNotFoundError:
        return None
    airflow = LocalAirflow(project_root, home, port)
    return airflow if airflow.api.health() is not None else None


def _components(home: Path) -> dict[str, Background]:
    return {name: Background(name, home / "run") for name in COMPONENTS}


def _stop(components: Collection[Background], home: Path) -> None:
    """All at the same time: each may need its grace."""
    for component in components:
        component.ask_to_stop()
    for component in components:
        component.stop()
    _state_file(home).unlink(missing_ok=True)


def _state_file(home: Path) -> Path:
    return home / "run" / "airflow.json"


def _poll(probe: Callable[[], T | None], timeout: float, found: Callable[[], str], where: Path) -> T:
    """Call ``probe`` until it returns something; MachineError ``airflow.timeout`` saying what was found."""
    deadline, pause = time.monotonic() + timeout, 0.25
    while True:
        result = probe()
        if result is not None:
            return result
        if time.monotonic() > deadline:
            raise MachineError(
                "airflow.timeout",
                f"waited {timeout:.0f} s: {found()}",
                where=str(where),
                do="read the logs of Airflow's home, or wait longer",
            )
        time.sleep(pause)
        # Each question costs the api-server what the task that is waited for could use.
        pause = min(1.2 * pause, 1.0)


def _as_line(event: Any) -> str:
    if isinstance(event, str):
        return event
    causes = [f"{cause['exc_type']}: {cause['exc_value']}" for cause in event.get("error_detail") or []]
    return " ".join(part for part in (event.get("timestamp"), event.get("event"), *causes) if part)
