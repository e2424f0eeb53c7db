"""A driver and two workers on three hosts that share no folder, started by a profile of `kind: commands`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from drawdown.jvm.spark_home import spark_home
from tests.support.cellar import SECRET, written
from tests.support.command_line import DRAWDOWN
from tests.support.dag_project import ROOT
from tests.support.hosts import BEYOND, Hosts, program
from tests.support.s3_servers import Versitygw
from tests.support.waiting import until

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

PROJECT = """
storage_root: {storage_root}
storages: {storages}
metastore: sqlite:///metastore.db
clusters:
  local: {{kind: local}}
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

root, driver = sys.argv[1:3]  # a worker has arguments of its own
project = load_project(Path(root))
request = CommandsRequest(project, "hosts", project.clusters["hosts"], "a-run", 2, {})

def place(part):
    import os, pathlib, socket, time
    time.sleep(2)  # so that one executor does not take both parts
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((driver, 9))
        yield probe.getsockname()[0], pathlib.Path(root, "include").exists(), sum(part)

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
    root = project_on(hosts, "s3://nowhere/yet")
    assert driver.sees(root / "include")
    assert not one.sees(root / "include")
    assert not one.sees(two.folder / ".ready")

    (root / "job.py").write_text(JOB)
    inside = {"PYTHONPATH": f"{ROOT / 'include'}:{ROOT}", "SPARK_SECRET": SECRET}
    done = driver.run(sys.executable, str(root / "job.py"), str(root), BEYOND, env=inside, timeout=400)
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, done.stdout + done.stderr
    said = json.loads(lines[0].removeprefix("FOUND "))
    assert said["driver"] == driver.address
    assert {address for address, _, _ in said["found"]} == {one.address, two.address}
    assert not any(sees for _, sees, _ in said["found"]), "no executor sees the project"
    assert sum(part for _, _, part in said["found"]) == sum(range(1000))
    assert SECRET not in done.stdout + done.stderr
    until(lambda: not daemons(root), 60)


QUALITY = """
rules:
  - {name: k_is_there, check: "k is not null", on_fail: fail}
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: n, min_value: 1}
"""
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: "id INT, k STRING", options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: delta, path: tables/counts, schema: out.ddl, mode: update, keys: [k], publish: audited}
state: {partitions: 2}
cluster: hosts
"""
FILES, ROWS = 4, 10


def test_a_pipeline_runs_twice_on_hosts_that_share_nothing_but_a_bucket(hosts: Hosts) -> None:
    with Versitygw(BEYOND) as s3:
        bucket = s3.bucket()
        lake = {"address": f"s3://{bucket}", "endpoint": s3.endpoint, "access_key": "${S3_KEY}"}
        lake["secret_key"] = "${S3_SECRET}"
        root = project_on(hosts, f"s3://{bucket}/drawdown", json.dumps({"lake": lake}))
        folder = root / "include" / "pipelines" / "counts"
        folder.mkdir()
        files = {"pipeline.yaml": SPEC, "out.ddl": "k STRING, n BIGINT", "quality.yaml": QUALITY}
        files["transform.sql"] = "select k, count(*) as n from events group by k"
        for name, text in files.items():
            (folder / name).write_text(text)
        keys = {"S3_KEY": s3.access_key, "S3_SECRET": s3.secret_key, "SPARK_SECRET": SECRET}
        landed: list[str] = []
        for run in range(2):
            for file in range(FILES):
                rows = [{"id": i, "k": "abcde"[(i * i + file + run) % 5]} for i in range(ROWS)]
                landed += [row["k"] for row in rows]
                text = "".join(f"{json.dumps(row)}\n" for row in rows)
                s3.client(bucket).put(f"drawdown/landing/events/{run}-{file}.json", text.encode())
            done = hosts["driver"].run(
                *DRAWDOWN, "run", "counts", env={**keys, "DRAWDOWN_PROJECT": str(root)}, timeout=400
            )
            assert done.returncode == 0, done.stdout + done.stderr + logs(root)
            until(lambda: not daemons(root), 60)
            options = {
                "AWS_ENDPOINT_URL": s3.endpoint,
                "AWS_ACCESS_KEY_ID": s3.access_key,
                "AWS_REGION": s3.region,
            }
            options |= {"AWS_SECRET_ACCESS_KEY": s3.secret_key, "AWS_ALLOW_HTTP": "true"}
            table = DeltaTable(
                f"s3://{bucket}/drawdown/tables/counts", storage_options=options
            ).to_pyarrow_table()
            assert {row["k"]: row["n"] for row in table.to_pylist()} == Counter(landed)
            assert table.num_rows == 5
        assert "verdict pass" in done.stdout + done.stderr
        assert not list(hosts["one"].folder.glob("**/*.parquet")), "nothing but scratch was on a worker"


def logs(root: Path) -> str:
    return "".join(log.read_text()[-3000:] for log in root.glob("*.log"))


def project_on(hosts: Hosts, storage_root: str, storages: str = "{}") -> Path:
    """A project in the driver's folder, whose programs start daemons on the other hosts."""
    root = hosts["driver"].folder / "project"
    (root / "include" / "pipelines").mkdir(parents=True)
    (root / "include" / "project.yaml").write_text(
        PROJECT.format(storage_root=storage_root, storages=storages)
    )
    (root / ".drawdown").mkdir()
    for shared in ("jars", "own-jar", "archive", "object-storage-jars", "google-storage-jars"):
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
