"""A standalone cluster for one run: spun up, found again by its key, given to an application, taken down."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

from drawdown.errors import MachineError
from drawdown.jvm.class_archive import driver_class_path, java_options
from drawdown.jvm.home import machine_root
from drawdown.jvm.spark_home import spark_home
from drawdown.launch.environment import for_spark
from drawdown.launch.settings import ON_THIS_MACHINE, Settings, conf_of
from drawdown.launch.standalone.cluster_folder import MARK, ClusterFolder, ClusterRecord
from drawdown.launch.standalone.reaper import reap
from drawdown.launch.standalone.supervisor import KEEP
from drawdown.processes.background import last_lines
from drawdown.processes.ports import LOOPBACK
from drawdown.spec import Project, StandaloneCluster

_DAEMON_MEMORY = "256m"
_DAEMON_OPTIONS = "SPARK_DAEMON_JAVA_OPTS"
_DAEMON_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Master and workers compute nothing; the options of the user's environment come after these."""
_LOOK_EVERY = 0.05


@dataclass(frozen=True)
class Ask:
    """For whom a cluster is, and how large it is to be.

    Attributes:
        key: by which it is found again: one cluster for each.
        by: of the run, for the record.
    """

    key: str
    profile: StandaloneCluster
    workers: int
    by: Mapping[str, Any]


def spin_up(project: Project, ask: Ask) -> ClusterRecord:
    """A cluster that goes on without this process, until `take_down` or its TTL.

    One that stands already for the key is taken down before. When this process ends half-way, however it
    ends, so does the cluster.

    Raises:
        MachineError: ``cluster.not-up``, ``jars.missing``; nothing is left then.
    """
    record, held = _start(project, ask)
    held.write(KEEP)
    held.close()
    return record


@contextmanager
def attended(project: Project, ask: Ask) -> Iterator[ClusterRecord]:
    """A cluster that ends with the block, and with this process, however that ends.

    Raises:
        MachineError: as `spin_up`.
    """
    record, held = _start(project, ask)
    try:
        yield record
    finally:
        _give_up(project, ask, held)


def shut_down(project: Project, key: str) -> bool:
    """End the cluster of a key and wait until no process of it is left; whether there was one."""
    return ClusterFolder.of(project.state_dir, key).end()


def standing(project: Project, key: str) -> ClusterRecord | None:
    """The cluster of a key; None when there is none, or none that is up."""
    folder = ClusterFolder.of(project.state_dir, key)
    record = folder.record()
    return record if record is not None and record.master and folder.is_kept() else None


def settings_of(project: Project, profile: StandaloneCluster, key: str, cluster: ClusterRecord) -> Settings:
    """The settings of an application on a cluster: one executor on each worker, with all that it has.

    Raises:
        MachineError: ``jars.missing``.
    """
    folder, root = ClusterFolder.of(project.state_dir, key), machine_root(project.root)
    conf = {
        "spark.master": cluster.master,
        **ON_THIS_MACHINE,
        "spark.executor.memory": cluster.memory,
        "spark.executor.extraClassPath": driver_class_path(root),
        # What a killed executor has unpacked goes with the cluster.
        "spark.executor.extraJavaOptions": f"{java_options(root)} -Djava.io.tmpdir={folder.scratch}",
        # PySpark hands timestamps to Python code in the time zone of its process.
        "spark.executorEnv.TZ": "UTC",
    }
    return Settings(conf_of(project, profile, conf), folder.properties)


def _start(project: Project, ask: Ask) -> tuple[ClusterRecord, IO[bytes]]:
    """A cluster that is up, and the pipe to its supervisor, which ends it when that is closed."""
    # Before anything is started: what is missing is said at once.
    driver_class_path(machine_root(project.root))
    reap(project)
    shut_down(project, ask.key)
    folder = ClusterFolder.of(project.state_dir, ask.key)
    held = _begin(project, folder, ask)
    try:
        return _when_up(folder), held
    except BaseException:
        _give_up(project, ask, held)
        raise


def _begin(project: Project, folder: ClusterFolder, ask: Ask) -> IO[bytes]:
    """Write down the request and start the supervisor, which has the folder's lock from its first moment."""
    lock = folder.make()
    try:
        folder.properties.touch(mode=0o600)
        folder.properties.write_text(_private_settings())
        profile, until = ask.profile, time.time() + ask.profile.ttl.delta.total_seconds()
        folder.write(
            ClusterRecord(ask.workers, profile.worker_cores, profile.worker_memory, until, dict(ask.by))
        )
        with folder.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "drawdown.launch.standalone.supervisor", str(folder.path)],
                env=_environment(project, folder),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[lock],
            )
    except BaseException:
        folder.remove()
        raise
    finally:
        os.close(lock)
    # It forks the supervisor, and ends.
    process.wait()
    assert process.stdin is not None
    return process.stdin


def _when_up(folder: ClusterFolder) -> ClusterRecord:
    """The record once all workers are registered; the supervisor ends when they take too long."""
    while folder.is_kept():
        record = folder.record()
        if record is not None and record.master:
            return record
        time.sleep(_LOOK_EVERY)
    raise MachineError(
        "cluster.not-up",
        f"the cluster did not come up: {last_lines(folder.log)}",
        where=str(folder.log),
        do="read the log named above; `drawdown doctor` says what this machine lacks",
    )


def _give_up(project: Project, ask: Ask, held: IO[bytes]) -> None:
    with suppress(BrokenPipeError):
        held.close()
    shut_down(project, ask.key)


def _private_settings() -> str:
    """A file in Java's form for master, workers and drivers of one cluster."""
    settings = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secrets.token_hex(32),
        # It asks nobody for the secret (org.apache.spark.deploy.rest.StandaloneRestServer).
        "spark.master.rest.enabled": "false",
        # Nor do the pages, and they have buttons.
        "spark.ui.killEnabled": "false",
        "spark.master.ui.decommission.allow.mode": "DENY",
        # A port that was free a moment ago, and no other.
        "spark.port.maxRetries": "0",
    }
    return "".join(f"{key} {value}\n" for key, value in settings.items())


def _environment(project: Project, folder: ClusterFolder) -> dict[str, str]:
    """Of supervisor, daemons and executors; from this process's, so that Python finds the same modules."""
    return {
        **for_spark(os.environ, project.passed_environment),
        MARK: str(folder.path),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_DIRS": str(folder.scratch),
        "TMPDIR": str(folder.scratch),
        "SPARK_DAEMON_MEMORY": _DAEMON_MEMORY,
        _DAEMON_OPTIONS: f"{_DAEMON_JAVA} {os.environ.get(_DAEMON_OPTIONS, '')}",
        "PYSPARK_PYTHON": sys.executable,
        # Spark's daemons and Python's workers take times from it.
        "TZ": "UTC",
    }
