"""Start a standalone cluster for one run, find it by its key, configure applications for it, stop it."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Any

from drawdown.errors import MachineError
from drawdown.jvm.class_archive import driver_class_path, java_options
from drawdown.jvm.home import machine_root
from drawdown.jvm.spark_home import spark_home
from drawdown.launch.environment import for_spark, passed_by
from drawdown.launch.later_try import is_of_a_later_try
from drawdown.launch.settings import ON_THIS_MACHINE, Settings, conf_of
from drawdown.launch.standalone.cluster_folder import MARK, ClusterFolder, ClusterRecord, clusters_dir
from drawdown.launch.standalone.private_settings import write_private_settings
from drawdown.launch.standalone.reaper import reap
from drawdown.launch.standalone.supervisor import KEEP
from drawdown.processes.background import last_lines
from drawdown.processes.identity import this_view
from drawdown.processes.ports import free_ports
from drawdown.spec import Project, StandaloneCluster

_DAEMON_MEMORY = "256m"
_DAEMON_OPTIONS = "SPARK_DAEMON_JAVA_OPTS"
_DAEMON_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Master and workers do little work; the options of the user's environment come after these."""
_LOOK_EVERY = 0.05


@dataclass(frozen=True)
class Ask:
    """Which run needs a cluster, and of which size.

    Attributes:
        key: of the run; a new cluster of the same run replaces the one before.
        by: who requested the run, for the record.
        instance: of this cluster alone.
    """

    key: str
    profile: StandaloneCluster
    workers: int
    by: Mapping[str, Any]
    instance: str = field(default_factory=lambda: secrets.token_hex(4))


def spin_up(project: Project, ask: Ask) -> ClusterRecord:
    """Start a cluster that continues without this process, until `shut_down` or its TTL.

    A cluster that already runs for the key is stopped first. If this process ends before the cluster is up,
    for whatever reason, the cluster ends too.

    Raises:
        MachineError: ``cluster.not-up``, ``cluster.no-address``, ``jars.missing``; nothing is left running.
    """
    record, held = _start(project, ask)
    held.write(KEEP)
    held.close()
    return record


@contextmanager
def attended(project: Project, ask: Ask) -> Iterator[ClusterRecord]:
    """Start a cluster that ends with the block, and with this process, however that ends.

    Raises:
        MachineError: see `spin_up`.
    """
    record, held = _start(project, ask)
    try:
        yield record
    finally:
        _give_up(project, ask, held)


def shut_down(project: Project, key: str) -> bool:
    """End all clusters of a run and wait until none of their processes is left; return whether there were
    any.

    Raises:
        MachineError: ``cluster.elsewhere``.
    """
    ended = [folder.end() for folder in ClusterFolder.all_of(project.state_dir, key)]
    return any(ended)


def give_up(project: Project, ask: Ask) -> None:
    """End the cluster of this request and no other one, which a later try may have started."""
    ClusterFolder.of(project.state_dir, ask.key, ask.instance).end()


def standing(project: Project, key: str) -> ClusterRecord | None:
    """Return the run's cluster on this machine; None when there is none, or it is not up."""
    for folder in reversed(ClusterFolder.all_of(project.state_dir, key)):
        record = folder.record()
        if record is not None and record.is_here and record.master and folder.is_kept():
            return record
    return None


def settings_of(project: Project, profile: StandaloneCluster, cluster: ClusterRecord) -> Settings:
    """Return an application's settings for a cluster: one executor per worker, with all its resources.

    Raises:
        MachineError: ``jars.missing``.
    """
    there = clusters_dir(project.state_dir) / cluster.folder
    folder, root = ClusterFolder(there), machine_root(project.root)
    conf = {
        "spark.master": cluster.master,
        **ON_THIS_MACHINE,
        "spark.driver.host": cluster.host,
        "spark.driver.bindAddress": cluster.host,
        "spark.executor.memory": cluster.memory,
        "spark.executor.extraClassPath": driver_class_path(root, project.bucket_schemes),
        # Files that a killed executor has unpacked are removed with the cluster.
        "spark.executor.extraJavaOptions": f"{java_options(root)} -Djava.io.tmpdir={folder.scratch}",
        # PySpark passes timestamps to Python code in the time zone of its process.
        "spark.executorEnv.TZ": "UTC",
    }
    return Settings(conf_of(project, profile, conf), folder.properties)


def _start(project: Project, ask: Ask) -> tuple[ClusterRecord, IO[bytes]]:
    """Start a cluster; return it and the pipe to its supervisor, whose closing ends the cluster."""
    # Check for missing jars before anything is started.
    driver_class_path(machine_root(project.root))
    _require_address(ask.profile.host)
    reap(project)
    _replace(project, ask)
    folder = ClusterFolder.of(project.state_dir, ask.key, ask.instance)
    held = _begin(project, folder, ask)
    try:
        return _when_up(folder), held
    except BaseException:
        _give_up(project, ask, held)
        raise


def _replace(project: Project, ask: Ask) -> None:
    """End clusters of earlier tries; one on another machine is asked to, and nobody waits for it."""
    for folder in ClusterFolder.all_of(project.state_dir, ask.key):
        record = folder.record()
        if record is not None and is_of_a_later_try(record.asked_by, ask.by):
            raise MachineError(
                "cluster.not-up",
                f"a later try of this task has started {record.folder}, so this one starts no cluster",
                where=str(folder.path),
                do="nothing: look at the later try",
            )
        if record is None or record.is_here:
            folder.end()
        else:
            folder.ask()


def _require_address(host: str) -> None:
    try:
        free_ports(1, host)
    except OSError as cause:
        raise MachineError(
            "cluster.no-address",
            f"no daemon can listen on {host!r}: {cause.strerror or cause}",
            where="`host:` of the cluster in include/project.yaml",
            do="write an address of this machine (hostname -I lists them), or remove `host:` for 127.0.0.1",
        ) from None


def _begin(project: Project, folder: ClusterFolder, ask: Ask) -> IO[bytes]:
    """Write the request and start the supervisor, which holds the folder's lock from the start."""
    lock = folder.make()
    try:
        write_private_settings(folder.properties, ask.profile.host)
        profile, until = ask.profile, time.time() + ask.profile.ttl.delta.total_seconds()
        folder.write(
            ClusterRecord(
                ask.workers,
                profile.worker_cores,
                profile.worker_memory,
                until,
                dict(ask.by),
                host=profile.host,
                view=this_view(),
                folder=folder.path.name,
            )
        )
        with folder.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "drawdown.launch.standalone.supervisor", str(folder.path)],
                env=_environment(project, folder, profile.host),
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
    # This process forks the supervisor and ends.
    process.wait()
    assert process.stdin is not None
    return process.stdin


def _when_up(folder: ClusterFolder) -> ClusterRecord:
    """Wait until all workers are registered, and return the record. The supervisor limits the time."""
    while folder.is_kept():
        record = folder.record()
        if record is not None and record.master:
            return record
        time.sleep(_LOOK_EVERY)
    raise MachineError(
        "cluster.not-up",
        f"the cluster did not start: {last_lines(folder.log)}",
        where=str(folder.log),
        do="read the log named above; `drawdown doctor` shows what this machine lacks",
    )


def _give_up(project: Project, ask: Ask, held: IO[bytes]) -> None:
    with suppress(BrokenPipeError):
        held.close()
    give_up(project, ask)


def _environment(project: Project, folder: ClusterFolder, host: str) -> dict[str, str]:
    """Return the environment of supervisor, daemons and executors, with this process's Python modules."""
    return {
        **for_spark(os.environ, passed_by(project)),
        MARK: str(folder.path),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": host,
        "SPARK_LOCAL_DIRS": str(folder.scratch),
        "TMPDIR": str(folder.scratch),
        "SPARK_DAEMON_MEMORY": _DAEMON_MEMORY,
        _DAEMON_OPTIONS: f"{_DAEMON_JAVA} {os.environ.get(_DAEMON_OPTIONS, '')}",
        "PYSPARK_PYTHON": sys.executable,
        # Spark's daemons and Python's workers use it as their time zone.
        "TZ": "UTC",
    }
