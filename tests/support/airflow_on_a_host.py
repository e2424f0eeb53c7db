"""A real Airflow on one host of `tests.support.hosts`, and a program there that tells it what a test wants.

    python -m tests.support.airflow_on_a_host ROOT

Runs on the host, because Airflow's page is on the host's own loopback interface. Each line of standard input
is the id of a DAG: it is run once, and a line of JSON on standard output says how that ended.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dev.airflow.home import LocalAirflow
from tests.support.dag_project import ROOT
from tests.support.host_project import HostProject


class AirflowOnAHost:
    """``with AirflowOnAHost(project) as airflow``: its scheduler runs the DAGs of a project on its host."""

    def __init__(self, project: HostProject) -> None:
        self._project = project

    def __enter__(self) -> Self:
        secrets = self._project.servers.environment
        self._process = subprocess.Popen(
            self._project.host.command(sys.executable, "-m", __name__, str(self._project.root)),
            # Whoever enters another mount namespace stands at its root.
            env={**os.environ, **secrets, "PYTHONPATH": f"{ROOT / 'include'}:{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def begin(self, dag_id: str) -> None:
        """Start a run of a DAG."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{dag_id}\n")
        self._process.stdin.flush()

    def ended(self, seconds: float = 1000) -> dict[str, Any]:
        """Return how the run ended: its `state`, `tasks` (task -> state) and `log` of all its tasks."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        assert ready, f"the run has not ended within {seconds:.0f} s"
        line = self._process.stdout.readline()
        assert line, "Airflow has ended"
        return dict(json.loads(line))


def main(root: Path) -> None:
    with LocalAirflow(root, root / "airflow") as airflow:
        for line in sys.stdin:
            dag_id = line.strip()
            airflow.unpause(dag_id)
            run_id = airflow.trigger(dag_id)
            state = airflow.wait(dag_id, run_id, 900)
            tasks = airflow.task_states(dag_id, run_id)
            log = "\n".join(airflow.task_log(dag_id, run_id, task) for task in tasks)
            print(json.dumps({"state": state, "tasks": tasks, "log": log}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
