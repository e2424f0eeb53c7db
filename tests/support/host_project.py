"""One project on hosts that share nothing: a bucket and a metastore beyond them are all they have in common.

Each host that drives has a copy of the project in its own folder. Its programs (`kind: commands`) start a
master on the host `one` and workers on `one` and `two`, by a program that is on those hosts, as over SSH: a
host that is cut off starts and ends nothing there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from drawdown.jvm.spark_home import spark_home
from drawdown.metastore import Metastore
from drawdown.testing.servers.postgres import PostgresServer
from tests.support.cellar import SECRET, written
from tests.support.command_line import CommandLine
from tests.support.dag_project import ROOT
from tests.support.hosts import METASTORE, STORAGE, Host, Hosts, program
from tests.support.s3_client import S3Client
from tests.support.s3_servers import S3Server, Versitygw
from tests.support.waiting import until

WORKERS = ("one", "two")
SERVICE = "drawdown"
"""Below which folder of the bucket the project's storage is."""

_PROJECT = """
storage_root: s3://{bucket}/{service}
storages:
  lake:
    address: s3://{bucket}
    endpoint: {endpoint}
    access_key: ${{S3_KEY}}
    secret_key: ${{S3_SECRET}}
metastore: "${{METASTORE}}"
lease_ttl: {lease_ttl}
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
{more}
"""
# A cluster's secret reaches its daemons by their environment.
_OPTIONS = "-Dspark.authenticate=true -Dspark.network.crypto.enabled=true -Dspark.master.rest.enabled=false"
_SHARED = ("jars", "own-jar", "archive", "object-storage-jars")
"""What `make setup` has put into a machine, as its image would."""

# Refused is an answer: nothing listens at this port, and the host is there.
_REACHES = """reaches() { [[ "$(timeout 3 bash -c ": >/dev/tcp/$1/9" 2>&1)" == *refused* ]]; }"""


@dataclass
class Beyond:
    """The servers that all hosts reach by their address, and what a test needs to read them by itself."""

    s3: S3Server
    postgres: PostgresServer
    lease_ttl: str = "60 seconds"
    more: str = ""
    bucket: str = field(init=False)
    url: str = field(init=False)

    def __post_init__(self) -> None:
        self.bucket = self.s3.bucket()
        self.url = self.postgres.create_database().replace("postgresql:", "postgresql+psycopg:")

    @property
    def environment(self) -> dict[str, str]:
        """Which every process of the project has on every host: the secrets."""
        keys = {"S3_KEY": self.s3.access_key, "S3_SECRET": self.s3.secret_key}
        return {**keys, "METASTORE": self.url, "SPARK_SECRET": SECRET}

    def client(self) -> S3Client:
        return self.s3.client(self.bucket)

    def land(self, path: str, rows: list[dict[str, Any]]) -> None:
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        self.client().put(f"{SERVICE}/{path}", text.encode())

    def table(self, path: str) -> DeltaTable:
        options = {
            "AWS_ENDPOINT_URL": self.s3.endpoint,
            "AWS_REGION": self.s3.region,
            "AWS_ALLOW_HTTP": "true",
        }
        options |= {"AWS_ACCESS_KEY_ID": self.s3.access_key, "AWS_SECRET_ACCESS_KEY": self.s3.secret_key}
        return DeltaTable(f"s3://{self.bucket}/{SERVICE}/{path}", storage_options=options)

    def rows(self, path: str) -> list[dict[str, Any]]:
        return list(self.table(path).to_pyarrow_table().to_pylist())

    def files(self, below: str) -> dict[str, bytes]:
        """What is in the bucket, as files of the server's own disk: a host that is cut off cannot hide it."""
        assert isinstance(self.s3, Versitygw)
        folder = self.s3.objects / self.bucket / SERVICE
        found = (path for path in folder.glob(f"{below}/**/*") if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in found}

    @contextmanager
    def metastore(self) -> Iterator[Metastore]:
        with Metastore.open(self.url) as metastore:
            yield metastore


@contextmanager
def beyond(lease_ttl: str = "60 seconds", more: str = "") -> Iterator[Beyond]:
    """Start versitygw and PostgreSQL, each at an address of its own at which hosts reach this machine."""
    with Versitygw(STORAGE) as s3, PostgresServer(METASTORE) as postgres:
        yield Beyond(s3, postgres, lease_ttl, more)


class HostProject:
    """The project's copy on one host."""

    def __init__(self, hosts: Hosts, name: str, servers: Beyond, pipelines: Mapping[str, Mapping[str, str]]):
        self.host, self.servers = hosts[name], servers
        self.root = self.host.folder / "project"
        include = self.root / "include"
        for pipeline, files in pipelines.items():
            (include / "pipelines" / pipeline).mkdir(parents=True)
            for file, text in files.items():
                (include / "pipelines" / pipeline / file).write_text(text)
        values = {"bucket": servers.bucket, "service": SERVICE, "endpoint": servers.s3.endpoint}
        (include / "project.yaml").write_text(
            _PROJECT.format(**values, lease_ttl=servers.lease_ttl, more=servers.more)
        )
        for shown in ("dags", "jobs", "plugins"):
            (self.root / shown).symlink_to(ROOT / shown)
        (self.root / ".drawdown").mkdir()
        for shared in _SHARED:
            if (ROOT / ".drawdown" / shared).exists():
                shutil.copytree(
                    ROOT / ".drawdown" / shared, self.root / ".drawdown" / shared, copy_function=_shared
                )
        written(self.root, _programs([hosts[worker] for worker in WORKERS]))

    def command(self, *arguments: str, **environment: str) -> CommandLine:
        """`drawdown ARGUMENTS` on this host."""
        return CommandLine(
            self.root, *arguments, on=self.host.command, **self.servers.environment,
            DRAWDOWN_PROJECT=str(self.root), **environment,
        )  # fmt: skip

    def ends_well(self, *arguments: str, seconds: float = 400) -> str:
        """`drawdown ARGUMENTS` to its end; what it has said."""
        code, said = self.ends(*arguments, seconds=seconds)
        assert code == 0, said + self.spark_log()
        return said

    def ends(self, *arguments: str, seconds: float = 400) -> tuple[int, str]:
        with self.command(*arguments) as command:
            code = command.ended(seconds)
        return code, "".join(command.said)

    def spark_log(self) -> str:
        log = self.root / ".drawdown" / "logs" / "spark.log"
        return log.read_text()[-5000:] if log.exists() else ""


def _shared(source: str, target: str) -> None:
    """Let a file have a second name: some hundred megabytes for each host would fill a disk."""
    try:
        os.link(Path(source).resolve(), target)
    except OSError:
        shutil.copy2(source, target)


def machines(hosts: Hosts) -> None:
    """Put onto each host of workers the program that starts and ends daemons there."""
    for name in WORKERS:
        host = hosts[name]
        file = host.folder / "daemons"
        file.write_text(_daemons(host))
        file.chmod(0o755)


def clusters_on(host: Host) -> list[str]:
    """Names of the clusters that have daemons there."""
    folder = host.folder / "clusters"
    return sorted(each.name for each in folder.iterdir()) if folder.exists() else []


def processes(pick: Callable[[dict[str, str]], bool]) -> list[int]:
    """Process ids of those whose environment is as `pick` wants it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        pairs = [pair.split("=", 1) for pair in text.split("\0") if "=" in pair]
        if int(process.name) != os.getpid() and pick(dict(pairs)):
            found.append(int(process.name))
    return found


def daemons_of(host: Host) -> list[int]:
    """Process ids of master, worker and executors there."""
    return processes(
        lambda environment: environment.get("SPARK_LOCAL_DIRS", "").startswith(f"{host.folder}/")
    )


def until_no_daemons(hosts: Hosts) -> None:
    for name in WORKERS:
        until(lambda name=name: not daemons_of(hosts[name]), 60)
        assert clusters_on(hosts[name]) == []


def _daemons(host: Host) -> str:
    return program([
        f'here="{host.folder}/clusters/$DRAWDOWN_CLUSTER_NAME"',
        "case $1 in",
        "start)",
        '  kind=$2; shift 2; mkdir -p "$here"',
        '  if [ ! -e "$here/$kind.log" ]; then',
        f'    export SPARK_LOCAL_IP={host.address} SPARK_LOCAL_DIRS="$here"',
        '    export _SPARK_AUTH_SECRET="$SPARK_SECRET"',
        f"    export SPARK_DAEMON_MEMORY=256m SPARK_DAEMON_JAVA_OPTS='{_OPTIONS}'",
        f"    setsid {spark_home()}/bin/spark-class org.apache.spark.deploy.$kind --host {host.address}"
        ' --webui-port 0 "$@" </dev/null >"$here/$kind.log" 2>&1 &',
        '    echo $! >>"$here/pids"',
        "  fi ;;",
        # In the log, because a port that is free now may be taken a moment later.
        'address) grep -o "Spark master at spark://[0-9.:]*" "$here/master.Master.log" | grep -o spark:.* ;;',
        'workers) grep -c "Registering worker" "$here/master.Master.log" ;;',
        'alive) [ -e "$here/pids" ] && kill -0 "$(head -n1 "$here/pids")" ;;',
        "stop)",
        '  for pid in $(cat "$here/pids" 2>/dev/null); do kill -KILL -- "-$pid" || true; done',
        '  rm -rf "$here" ;;',
        "esac",
    ])  # fmt: skip


def _programs(workers: list[Host]) -> dict[str, str]:
    """The three programs of the project."""

    def on(host: Host, *arguments: str) -> str:
        return " ".join(host.command(f"{host.folder}/daemons", *arguments))

    first = workers[0]
    there = f'reaches {first.address} || {{ echo "no way to {first.name}" >&2; exit 1; }}'
    cores = "--cores $DRAWDOWN_WORKER_CORES --memory $DRAWDOWN_WORKER_MEMORY"
    starts = [
        on(host, "start", "worker.Worker", cores,
           f'--work-dir "{host.folder}/clusters/$DRAWDOWN_CLUSTER_NAME/work" "$master"')
        for host in workers
    ]  # fmt: skip
    ends = [
        f"if reaches {host.address}; then {on(host, 'stop')}; "
        f'else echo "no way to {host.name}" >&2; code=1; fi'
        for host in workers
    ]
    return {
        "up": program([
            _REACHES, there, on(first, "start", "master.Master", "--port 0"),
            f"until master=$({on(first, 'address')}); do sleep 0.2; done",
            *starts,
            f'until [ "$({on(first, "workers")})" = {len(workers)} ]; do sleep 0.2; done',
            """echo "{\\"master\\": \\"$master\\", \\"bill\\": {\\"cores\\": 2, \\"memory_gib\\": 2}}\"""",
        ]),
        "alive": program([_REACHES, there, on(first, "alive")]),
        "down": program([_REACHES, "code=0", *ends, "exit $code"]),
    }  # fmt: skip
