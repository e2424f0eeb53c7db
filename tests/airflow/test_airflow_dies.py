"""Airflow itself dies in the middle of a drain: no process is left, and the retried task goes on."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from dev.airflow.home import LocalAirflow
from drawdown.metastore import Metastore
from tests.support.airflow_runs import assert_success
from tests.support.dag_project import DagProject
from tests.support.dag_runs import processes_of
from tests.support.slow import slow_transform
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(600)

FILES = 12


def kill_everything_of(airflow: LocalAirflow) -> None:
    """Scheduler, its workers and their tasks at once, as when the machine's user is logged out by force."""
    mark = f"AIRFLOW_HOME={airflow.home}\0".encode()
    # Before the first of them dies: a guard takes its scheduler along, whose session is then unknown.
    sessions = {os.getsid(pid) for pid in _marked(mark)}
    assert _workers(sessions)
    while pids := [*_marked(mark), *_workers(sessions)]:
        for pid in pids:  # one may have been started while the others were killed
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _marked(mark: bytes) -> list[int]:
    """The processes with this in their environment, but for jobs."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            continue
        if mark in environment and b"SparkSubmit" not in command and b"submit" not in command:
            found.append(int(process.name))
    return found


def _workers(sessions: set[int]) -> list[int]:
    """The workers of these sessions: they write their titles over their environments."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_worker = (process / "cmdline").read_bytes().startswith(b"airflow worker")
            if is_worker and os.getsid(int(process.name)) in sessions:
                found.append(int(process.name))
    return found


@pytest.mark.fault("F38", "delta")
def test_a_drain_outlives_the_death_of_its_scheduler(tmp_path: Path) -> None:
    # A busy machine's new scheduler may lose tries that it has queued: more are left than that takes.
    project = DagProject(tmp_path / "project", more="lease_ttl: 5 seconds", retries=10)
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
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "30",
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
        assert_success(airflow, "events", run_id, 300)
    assert project.ids("events") == list(range(FILES))
    with Metastore.open(f"sqlite:///{project.root / 'metastore.db'}") as metastore:
        last, first = metastore.runs("events")
        assert metastore.holder_of("events") is None
    # A try that the new scheduler has queued, and lost while the machine was busy, came to no run.
    assert first.origin["try_number"] == 1 < last.origin["try_number"]
    assert (first.state, last.state) in [("stopped", "succeeded"), ("crashed", "succeeded")]
    assert first.counts.read + last.counts.read == FILES
