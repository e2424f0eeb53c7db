"""Clusters of `kind: commands` in a DAG: up, drain, down; and `down` after every death of a task or a run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag

from dev.airflow.home import LocalAirflow
from drawdown.metastore import Metastore
from tests.airflow.test_cluster_ends import Place, command, drivers, mark
from tests.support.cellar import SECRET, of_the_docs
from tests.support.dag_project import DagProject
from tests.support.dag_runs import Runs, processes_of
from tests.support.waiting import until

pytestmark = [pytest.mark.timeout(1200), pytest.mark.capability("HOST-13")]

PROFILE = """
clusters:
  local: {}
  one:
    kind: commands
    up: clusters/up
    alive: clusters/alive
    down: clusters/down
    workers: 1
    worker_memory: 600m
    shared_disk: true
    pass_environment: [HCLOUD_TOKEN]
"""


def made(root: Path) -> DagProject:
    project = DagProject(root, more=PROFILE, retries=0)
    of_the_docs(root)
    return project


def started(project: DagProject) -> list[int]:
    """Process ids of all that belongs to a cluster of the project: daemons, executors, guards."""
    return [pid for pid in processes_of(project.root) if _is_of_a_cluster(pid)]


def _is_of_a_cluster(pid: int) -> bool:
    said = command(pid)
    names = (b"deploy.master", b"deploy.worker", b"CoarseGrainedExecutorBackend", b"launch.commands.guard")
    return any(name in said for name in names)


def until_nothing_is_left(project: DagProject) -> None:
    with Metastore.open(f"sqlite:///{project.root / 'metastore.db'}") as metastore:
        until(lambda: not metastore.clusters.standing(), 120)
    until(lambda: not started(project), 120)


@pytest.mark.capability("HOST-01")
def test_the_set_up_and_the_tear_down_stand_around_the_drain(tmp_path: Path) -> None:
    project = made(tmp_path / "project")
    project.pipeline("events", "cluster: one")
    found = DagBag(dag_folder=project.root / "dags", bundle_path=project.root / "dags")
    assert found.import_errors == {}
    dag = found.dags["events"]
    assert dag.get_task("cluster_up").is_setup
    assert dag.get_task("cluster_down").is_teardown
    assert dag.get_task("cluster_up").downstream_task_ids == {"drain", "cluster_down"}


def test_a_program_that_is_missing_is_a_broken_dag_that_says_so(tmp_path: Path) -> None:
    project = made(tmp_path / "project")
    project.pipeline("events", "cluster: one")
    (project.root / "clusters" / "down").unlink()
    found = DagBag(dag_folder=project.root / "dags", bundle_path=project.root / "dags")
    text = "\n".join([*found.import_errors.values(), *(dag.doc_md or "" for dag in found.dags.values())])
    assert "cluster.command" in text
    assert "does not exist" in text


@pytest.mark.full
def test_every_run_has_a_cluster_that_is_gone_afterwards_and_no_secret_is_seen(tmp_path: Path) -> None:
    project = made(tmp_path / "project")
    project.pipeline("events", "cluster: one")
    runs = Runs(project, tmp_path / "airflow", {"HCLOUD_TOKEN": SECRET})
    project.land("events", 1, 2)
    states = runs.run("events")
    log = runs.log.read_text()
    assert set(states.values()) == {"success"}, log[-6000:]
    assert project.ids("events") == [1, 2]
    until_nothing_is_left(project)

    alive = project.root / "clusters" / "alive"
    alive.write_text('#!/bin/sh\necho "no: $HCLOUD_TOKEN"; exit 1\n')
    project.land("events", 3)
    states = runs.run("events")
    assert states["cluster_up"] == "failed"
    log += runs.log.read_text()
    assert "cluster.not-alive: `alive` ended with exit code 1: no: ***" in log
    assert SECRET not in log
    seen = repr(runs.query("select value from xcom")) + repr(
        runs.query("select rendered_fields from rendered_task_instance_fields")
    )
    assert "spark://127.0.0.1:" in seen, "the address of the master is there, for people"
    assert SECRET not in seen
    until_nothing_is_left(project)


class CommandsPlace(Place):
    """A pipeline on a cluster that programs start, one of whose batches waits to be let go."""

    def start(self) -> str:
        self.begun.unlink(missing_ok=True)
        run_id = self.trigger()
        until(self.begun.exists, 600)
        assert any(b"CoarseGrainedExecutorBackend" in command(pid) for pid in started(self.project))
        return run_id

    def is_over(self, run_id: str, down: str = "success") -> None:
        assert self.airflow.wait(self.name, run_id, 400) == "failed"
        states = self.airflow.task_states(self.name, run_id)
        ended = {task: states[task] for task in ("cluster_up", "drain", "cluster_down")}
        assert ended == {"cluster_up": "success", "drain": "failed", "cluster_down": down}
        until_nothing_is_left(self.project)
        until(lambda: not drivers(self.project.root), 120)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandsPlace]:
    project = made(tmp_path_factory.mktemp("commands") / "project")
    (project.root / "plugins").symlink_to(Path(__file__).parents[2] / "plugins")
    quickly = {"DRAWDOWN_STOP_GRACE": "5", "HCLOUD_TOKEN": SECRET}
    with LocalAirflow(project.root, project.root / "airflow", extra_env=quickly) as airflow:
        yield CommandsPlace(project, airflow, "waits", 1)
    for pid in processes_of(project.root):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.full
def test_a_killed_task_and_a_run_that_is_marked_failed_end_in_down(place: CommandsPlace) -> None:
    run_id = place.start()
    # The task's own process, which runs the operator: spark-submit's front is its child.
    [front] = [
        pid
        for pid in processes_of(place.project.root)
        if b"drawdown.launch.submit\0" in command(pid)
        and b"drawdown.launch.submit\0" not in command(_parent(pid))
    ]
    os.kill(_parent(front), signal.SIGKILL)
    place.is_over(run_id)

    run_id = place.start()
    mark(place, run_id, state="failed")
    place.is_over(run_id, down="failed")


@pytest.mark.full
def test_a_set_up_that_is_killed_in_the_middle_ends_in_down(place: CommandsPlace) -> None:
    up = place.project.root / "clusters" / "up"
    before, begun = up.read_text(), place.project.root / "up-begun"
    up.write_text(before + f"\ntouch {begun}; sleep 600\n")
    try:
        run_id = place.trigger()
        until(begun.exists, 300)
        [guard] = [pid for pid in started(place.project) if b"launch.commands.guard" in command(pid)]
        os.kill(_starter(guard), signal.SIGKILL)
        until_nothing_is_left(place.project)
        assert place.airflow.wait("waits", run_id, 400) == "failed"
    finally:
        up.write_text(before)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _starter(guard: int) -> int:
    """The process at the other end of a guard's standard input."""
    pipe = str(Path(f"/proc/{guard}/fd/0").readlink())
    [found] = [
        pid
        for pid in processes_of_any()
        if pid != guard and pipe in [_link(fd) for fd in Path(f"/proc/{pid}/fd").glob("*")]
    ]
    return found


def processes_of_any() -> list[int]:
    return [int(process.name) for process in Path("/proc").glob("[0-9]*")]


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""
