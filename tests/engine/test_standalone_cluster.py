"""A standalone cluster of one run: whatever ends it, no process of it is left."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from drawdown.errors import MachineError
from drawdown.launch.standalone.cluster import Ask, settings_of, shut_down, spin_up, standing
from drawdown.launch.standalone.cluster_folder import ClusterFolder
from drawdown.launch.standalone.reaper import reap
from drawdown.spec import Duration, Project, StandaloneCluster
from tests.support import clusters
from tests.support.sandbox import Sandbox
from tests.support.waiting import until

KEY = "flights.scheduled__2024-01-01T00:00:00+00:00"
INSTANCE = "0a1b2c3d"


def ask(workers: int = 1, ttl: str = "1 hour", host: str = "127.0.0.1") -> Ask:
    profile = StandaloneCluster(
        kind="standalone", host=host, workers=workers, worker_memory="512m", ttl=Duration.parse(ttl)
    )
    return Ask(KEY, profile, workers, {"dag_id": "flights"}, INSTANCE)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    sandbox = Sandbox(tmp_path / "project")
    yield sandbox.project
    shut_down(sandbox.project, KEY)


@pytest.fixture
def folder(project: Project) -> ClusterFolder:
    return ClusterFolder.of(project.state_dir, KEY, INSTANCE)


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


@pytest.fixture
def address() -> str:
    """An address of this machine that others can reach."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Connecting a datagram socket sends nothing: it finds the interface.
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no network interface but loopback")
        return str(probe.getsockname()[0])


@pytest.mark.full
def test_on_a_network_its_connections_are_encrypted_and_its_pages_ask_for_a_token(
    project: Project, folder: ClusterFolder, address: str
) -> None:
    cluster = spin_up(project, ask(host=address))
    assert cluster.master.startswith(f"spark://{address}:")
    profile = ask(host=address).profile
    settings = settings_of(project, profile, cluster)
    assert settings.conf["spark.driver.host"] == settings.conf["spark.driver.bindAddress"] == address
    private = folder.properties.read_text()
    assert "spark.network.crypto.enabled true" in private
    assert "spark.io.encryption.enabled true" in private

    listening = {
        each.laddr
        for kind in ("Master", "Worker")
        for pid in clusters.daemons(project.root, kind)
        for each in psutil.Process(pid).net_connections("tcp")
        if each.status == psutil.CONN_LISTEN
    }
    assert {place.ip.removeprefix("::ffff:") for place in listening} == {address}
    pages = [place.port for place in listening if _page(address, place.port) is not None]
    assert [_page(address, port) for port in pages] == [403, 403], "master and worker"

    program = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
assert spark.conf.get("spark.network.crypto.enabled") == "true"
print("sum", spark.range(0, 1000, 1, 4).selectExpr("sum(id)", "count(distinct id % 7)").collect()[0])
"""
    job = folder.path / "job.py"
    job.write_text(program)
    conf = [part for key, value in settings.conf.items() for part in ("--conf", f"{key}={value}")]
    submit = [sys.executable, "-m", "drawdown.launch.submit", "--properties-file", str(settings.private)]
    done = subprocess.run(
        [*submit, *conf, str(job)], capture_output=True, text=True, timeout=300, check=False
    )
    assert "sum Row(sum(id)=499500" in done.stdout, done.stdout + done.stderr
    secrets = [line.split()[1] for line in private.splitlines() if "secret" in line.lower()]
    assert len(secrets) == 2
    shown = done.stdout + done.stderr + folder.log.read_text()
    assert not any(secret in shown for secret in secrets)


def _page(host: str, port: int) -> int | None:
    """The status of a page that no token is given to; None where no HTTP is spoken."""
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/json/")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def test_an_address_of_another_machine_is_refused_before_anything_starts(project: Project) -> None:
    with pytest.raises(MachineError) as caught:
        spin_up(project, ask(host="203.0.113.7"))
    assert caught.value.id == "cluster.no-address"
    assert clusters.folders(project.root) == []


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
def test_a_worker_that_dies_is_replaced_three_times_and_a_master_is_not(
    project: Project, folder: ClusterFolder
) -> None:
    def kill(daemon: str) -> None:
        [pid] = until(lambda: clusters.daemons(project.root, daemon))
        os.kill(pid, signal.SIGKILL)
        until(lambda: pid not in clusters.processes(project.root))

    def started_again() -> int:
        return folder.log.read_text().count("worker 1 ended with exit code 137: started again")

    spin_up(project, ask())
    for times in (1, 2, 3):
        kill("Worker")
        until(lambda times=times: started_again() == times)  # type: ignore[misc]
    kill("Worker")
    clusters.until_nothing_is_left(project.root)
    assert "worker 1 ended with exit code 137, and no worker is left" in folder.log.read_text()

    spin_up(project, ask())
    kill("Master")
    clusters.until_nothing_is_left(project.root)
    assert "the master ended with exit code 137" in folder.log.read_text()


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
