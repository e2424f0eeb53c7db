"""A standalone cluster of one run: whatever ends it, no process of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from drawdown.errors import MachineError
from drawdown.launch.standalone.cluster import Ask, shut_down, spin_up, standing
from drawdown.launch.standalone.cluster_folder import ClusterFolder
from drawdown.launch.standalone.reaper import reap
from drawdown.spec import Duration, Project, StandaloneCluster
from tests.support import clusters
from tests.support.sandbox import Sandbox
from tests.support.waiting import until

KEY = "flights.scheduled__2024-01-01T00:00:00+00:00"


def ask(workers: int = 1, ttl: str = "1 hour") -> Ask:
    profile = StandaloneCluster(
        kind="standalone", workers=workers, worker_memory="512m", ttl=Duration.parse(ttl)
    )
    return Ask(KEY, profile, workers, {"dag_id": "flights"})


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    sandbox = Sandbox(tmp_path / "project")
    yield sandbox.project
    shut_down(sandbox.project, KEY)


@pytest.fixture
def folder(project: Project) -> ClusterFolder:
    return ClusterFolder.of(project.state_dir, KEY)


def test_it_stands_until_it_is_taken_down_and_lets_in_only_who_has_its_secret(
    project: Project, folder: ClusterFolder
) -> None:
    cluster = spin_up(project, ask(workers=2))
    assert standing(project, KEY) == cluster
    commands = clusters.processes(project.root).values()
    assert [sum(f"{daemon} " in command for command in commands) for daemon in ("Master", "Worker")] == [1, 2]

    secret = folder.properties.read_text().split("spark.authenticate.secret ")[1].split()[0]
    assert folder.properties.stat().st_mode & 0o777 == 0o600
    assert not any(secret in command for command in commands)
    assert secret not in folder.log.read_text()
    refused = subprocess.Popen(
        [*worker_command(), cluster.master], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert refused.stdout is not None
        assert any("Failed to connect to master" in line for line in refused.stdout)
    finally:
        refused.kill()
        refused.wait()

    assert shut_down(project, KEY)
    clusters.until_nothing_is_left(project.root)
    assert standing(project, KEY) is None
    assert not shut_down(project, KEY)


def worker_command() -> list[str]:
    from drawdown.jvm.spark_home import spark_home

    where = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "512m"]
    return [str(spark_home() / "bin" / "spark-class"), "org.apache.spark.deploy.worker.Worker", *where]


@pytest.mark.full
def test_its_time_ends_it(project: Project, folder: ClusterFolder) -> None:
    # On a busy machine it may be over before all is up.
    with suppress(MachineError):
        spin_up(project, ask(ttl="12 seconds"))
    clusters.until_nothing_is_left(project.root)
    assert "its time (ttl) is up" in folder.log.read_text()


@pytest.mark.full
def test_a_daemon_that_dies_ends_it(project: Project, folder: ClusterFolder) -> None:
    spin_up(project, ask())
    [worker] = [pid for pid, c in clusters.processes(project.root).items() if "worker.Worker " in c]
    os.kill(worker, signal.SIGKILL)
    clusters.until_nothing_is_left(project.root)
    assert "worker 1 ended with exit code 137" in folder.log.read_text()


def test_a_killed_supervisor_leaves_no_process_and_the_reaper_its_folder_neither(
    project: Project, folder: ClusterFolder
) -> None:
    supervisor = spin_up(project, ask()).keeper
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not clusters.processes(project.root), 120)
    assert standing(project, KEY) is None
    assert reap(project) == [f"cluster {folder.path.name} had lost its supervisor: ended"]
    clusters.until_nothing_is_left(project.root)


@pytest.mark.full
def test_a_worker_that_cannot_start_leaves_nothing_behind(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_WORKER_OPTS", "-agentlib:nosuch")
    with pytest.raises(MachineError) as caught:
        spin_up(project, ask())
    assert caught.value.id == "cluster.not-up"
    assert "nosuch" in caught.value.what
    assert "worker 1 ended with exit code 1" in caught.value.what
    clusters.until_nothing_is_left(project.root)


def test_whoever_spins_it_up_may_be_killed_half_way(project: Project, folder: ClusterFolder) -> None:
    program = f"""
from pathlib import Path
from drawdown.launch.standalone.cluster import spin_up
from drawdown.spec import load_project
from tests.engine.test_standalone_cluster import ask
spin_up(load_project(Path({str(project.root)!r})), ask())
"""
    starter = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    until(lambda: any("master.Master" in command for command in clusters.processes(project.root).values()))
    assert starter.poll() is None
    starter.kill()
    starter.wait()
    clusters.until_nothing_is_left(project.root)


@pytest.mark.full
def test_the_reaper_ends_what_is_past_its_time_and_nothing_else(
    project: Project, folder: ClusterFolder
) -> None:
    cluster = spin_up(project, ask())
    assert reap(project) == []
    assert standing(project, KEY) == cluster
    # As after a suspended machine: the time has passed, and the supervisor's own clock stood still.
    folder.note(until=1.0)
    assert reap(project) == [f"cluster {folder.path.name} was past its time: ended"]
    clusters.until_nothing_is_left(project.root)
