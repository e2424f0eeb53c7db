"""Airflow itself dies in the middle of a drain: no process is left, and the retried task goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from dev.airflow.home import LocalAirflow
from drawdown.metastore import Metastore
from tests.support.dag_project import DagProject
from tests.support.dag_runs import processes_of
from tests.support.slow import slow_transform
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(600)

FILES = 12


def kill_everything_of(airflow: LocalAirflow) -> None:
    """Scheduler, its workers and their tasks at once, as when the machine's user is logged out by force."""
    mark = f"AIRFLOW_HOME={airflow.home}\0".encode()
    sessions: set[int] = set()
    while _kill_those_of(mark, sessions):
        pass  # one may have been started while the others were killed


def _kill_those_of(mark: bytes, sessions: set[int]) -> int:
    """How many there were; the sessions they were of are added.

    A worker writes its title over its environment, so it is known by its session.
    """
    killed = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            pid, command = int(process.name), (process / "cmdline").read_bytes()
            found = mark in (process / "environ").read_bytes()
            if b"SparkSubmit" in command or b"submit" in command:
                continue
            if found or (command.startswith(b"airflow worker") and os.getsid(pid) in sessions):
                sessions.add(os.getsid(pid))
                os.kill(pid, signal.SIGKILL)
                killed += 1
        except OSError:
            continue
    return killed


@pytest.mark.fault("F38", "delta")
def test_a_drain_outlives_the_death_of_its_scheduler(tmp_path: Path) -> None:
    project = DagProject(tmp_path / "project", more="lease_ttl: 5 seconds")
    settings = project.root / "include" / "project.yaml"
    settings.write_text(settings.read_text().replace("retry_delay: 2 minutes", "retry_delay: 6 seconds"))
    folder = project.pipeline("events")
    # However long it takes to kill all of them, the drain has not come to its end.
    pace = project.root / "seconds_a_row"
    pace.write_text("5")
    (folder / "transform.py").write_text(slow_transform("events", "name", "string", pace))
    (folder / "pipeline.yaml").write_text(
        (folder / "pipeline.yaml").read_text().replace("transform.sql", "transform.py")
    )
    project.land("events", *range(FILES))
    # A scheduler takes over what a dead one had started, when that one's heartbeats are missing
    quickly = {
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
    }
    airflow = LocalAirflow(project.root, project.root / "airflow", extra_env=quickly)

    def batches() -> int:
        with Metastore.open(f"sqlite:///{project.root / 'metastore.db'}") as metastore:
            return len(metastore.batches("events", 1))

    with airflow:
        airflow.unpause("events")
        run_id = airflow.trigger("events")
        until(lambda: batches() >= 2)
        kill_everything_of(airflow)
        until(lambda: not processes_of(project.root), 60)
        assert 2 <= batches() < FILES
    pace.write_text("0")
    with airflow:
        assert airflow.wait("events", run_id, 300) == "success"
    assert project.ids("events") == list(range(FILES))
    with Metastore.open(f"sqlite:///{project.root / 'metastore.db'}") as metastore:
        last, first = metastore.runs("events")
        assert metastore.holder_of("events") is None
    # A try that the new scheduler has queued, and lost while the machine was busy, came to no run.
    assert first.origin["try_number"] == 1 < last.origin["try_number"]
    assert (first.state, last.state) in [("stopped", "succeeded"), ("crashed", "succeeded")]
    assert first.counts.read + last.counts.read == FILES
