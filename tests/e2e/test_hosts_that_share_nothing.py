"""A driver and two workers on three hosts that share no folder, started by a profile of `kind: commands`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from drawdown.jvm.spark_home import spark_home
from tests.support.cellar import SECRET, written
from tests.support.dag_project import ROOT
from tests.support.hosts import Hosts, program
from tests.support.waiting import until

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

PROJECT = """
storage_root: s3://nowhere/yet
metastore: sqlite:///metastore.db
clusters:
  local: {kind: local}
  hosts:
    kind: commands
    up: clusters/up
    alive: clusters/alive
    down: clusters/down
    workers: 2
    worker_memory: 600m
    spark_secret: SPARK_SECRET
"""
DAEMON = "org.apache.spark.deploy"
# A cluster's secret reaches its daemons by their environment.
OPTIONS = "-Dspark.authenticate=true -Dspark.network.crypto.enabled=true -Dspark.master.rest.enabled=false"
JOB = """
import json, sys
from pathlib import Path
from drawdown.launch.commands.cluster import attended, settings_of
from drawdown.launch.commands.request import CommandsRequest
from drawdown.spec import load_project
from drawdown.spark.session import application_session

project = load_project(Path(sys.argv[1]))
request = CommandsRequest(project, "hosts", project.clusters["hosts"], "a-run", 2, {})

def place(part):
    import os, pathlib, socket, time
    time.sleep(2)  # so that one executor does not take both parts
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("10.77.0.200", 9))
        yield probe.getsockname()[0], pathlib.Path(sys.argv[1], "include").exists(), sum(part)

with attended(request) as cluster, settings_of(request, cluster) as settings:
    import os
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--properties-file {settings.private} pyspark-shell"
    session = application_session("hosts", settings.conf)
    numbers = session.sparkContext.parallelize(range(1000), 8)
    found = numbers.mapPartitions(place).collect()
    print("FOUND", json.dumps({"found": found, "driver": settings.conf["spark.driver.host"]}))
    session.stop()
"""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    with Hosts(tmp_path / "hosts", "driver", "one", "two") as hosts:
        yield hosts


def test_a_job_is_computed_on_two_hosts_that_do_not_see_the_driver_s_folders(hosts: Hosts) -> None:
    driver, one, two = hosts["driver"], hosts["one"], hosts["two"]
    root = project_on(hosts)
    assert driver.sees(root / "include")
    assert not one.sees(root / "include")
    assert not one.sees(two.folder / ".ready")

    (root / "job.py").write_text(JOB)
    inside = {"PYTHONPATH": f"{ROOT / 'include'}:{ROOT}", "SPARK_SECRET": SECRET}
    done = driver.run(sys.executable, str(root / "job.py"), str(root), env=inside, timeout=400)
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, done.stdout + done.stderr
    said = json.loads(lines[0].removeprefix("FOUND "))
    assert said["driver"] == driver.address
    assert {address for address, _, _ in said["found"]} == {one.address, two.address}
    assert not any(sees for _, sees, _ in said["found"]), "no executor sees the project"
    assert sum(part for _, _, part in said["found"]) == sum(range(1000))
    assert SECRET not in done.stdout + done.stderr
    until(lambda: not daemons(root), 60)


def project_on(hosts: Hosts) -> Path:
    """A project in the driver's folder, whose programs start daemons on the other hosts."""
    root = hosts["driver"].folder / "project"
    (root / "include" / "pipelines").mkdir(parents=True)
    (root / "include" / "project.yaml").write_text(PROJECT)
    (root / ".drawdown").mkdir()
    for shared in ("jars", "own-jar", "archive"):
        if (ROOT / ".drawdown" / shared).exists():
            shutil.copytree(ROOT / ".drawdown" / shared, root / ".drawdown" / shared, symlinks=True)
    spark = f"{spark_home()}/bin/spark-class"

    def starts(name: str, kind: str, *arguments: str) -> str:
        host = hosts[name]
        address = f"SPARK_LOCAL_IP={host.address} SPARK_LOCAL_DIRS={host.folder}"
        options = f"SPARK_DAEMON_MEMORY=256m SPARK_DAEMON_JAVA_OPTS='{OPTIONS}'"
        secret = 'env _SPARK_AUTH_SECRET="$SPARK_SECRET"'
        where = f"--host {host.address} --webui-port 0"
        inside = " ".join(host.command(spark, f"{DAEMON}.{kind}", where, *arguments))
        log, pid = f"{root}/{kind}-{name}.log", f"{root}/pids"
        return f"{secret} {address} {options} setsid {inside} </dev/null >{log} 2>&1 & echo $! >>{pid}"

    address = f"spark://{hosts['one'].address}:7077"
    worker = f"--cores $DRAWDOWN_WORKER_CORES --memory $DRAWDOWN_WORKER_MEMORY {address} --work-dir"
    waits = f"until grep -q 'Registering worker' {root}/master.Master-one.log; do sleep 0.2; done"
    written(root, {
        "up": program([
            starts("one", "master.Master", "--port 7077"),
            starts("one", "worker.Worker", f"{worker} {hosts['one'].folder}/work"),
            starts("two", "worker.Worker", f"{worker} {hosts['two'].folder}/work"),
            waits,
            f"""echo '{{"master": "{address}", "bill": {{"cores": 2, "memory_gib": 2}}}}'""",
        ]),
        "alive": program([f'kill -0 "$(head -n1 {root}/pids)"']),
        "down": program([
            f"for pid in $(cat {root}/pids); do kill -KILL -- -$pid || true; done", f"rm {root}/pids",
        ]),
    })  # fmt: skip
    return root


def daemons(root: Path) -> list[int]:
    """Process ids of the daemons and executors of the project's programs."""
    mark = f"DRAWDOWN_PROJECT={root}\0".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes() and int(process.name) != os.getpid():
                found.append(int(process.name))
        except OSError:
            continue
    return found
