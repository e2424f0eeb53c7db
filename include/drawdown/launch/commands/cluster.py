"""Start a cluster by the project's programs for one run, find it, describe it to Spark, end it.

A run has one cluster that is used: a new one of the same run is another instance, and replaces the one
before.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from drawdown import errors
from drawdown.errors import DrawdownError, MachineError, SpecError
from drawdown.fleet.started_clusters import LATE
from drawdown.jvm.home import machine_root
from drawdown.jvm.jars import CONNECTORS, jar_paths
from drawdown.launch.commands.answer import UpAnswer
from drawdown.launch.commands.guard import KEEP, given_up
from drawdown.launch.commands.life import end, to_end
from drawdown.launch.commands.request import CommandsRequest, Programs, require_programs
from drawdown.launch.connection import sent_along
from drawdown.launch.settings import Settings, conf_of
from drawdown.metastore import Metastore
from drawdown.metastore.records import StartedCluster
from drawdown.processes.private_folder import private_folder
from drawdown.spec import CommandsCluster, Project


def spin_up(request: CommandsRequest) -> StartedCluster:
    """Start a cluster that continues without this process, until `shut_down` or its TTL.

    If this process ends before the cluster is up, for whatever reason, `down` is called.

    Raises:
        MachineError: ``cluster.up-failed``, ``cluster.bad-answer``, ``cluster.no-master``,
            ``cluster.not-alive``, ``jars.missing``; `down` has been called.
        SpecError: ``cluster.command``, ``cluster.storage``, ``cluster.secret``.
    """
    cluster, guard = _start(request)
    assert guard.stdin is not None
    guard.stdin.write(KEEP)
    guard.stdin.close()
    return cluster


@contextmanager
def attended(request: CommandsRequest) -> Iterator[StartedCluster]:
    """Start a cluster that ends with the block, and with this process, however that ends.

    Raises:
        MachineError, SpecError: see `spin_up`; ``cluster.down-failed``.
    """
    cluster, guard = _start(request)
    try:
        yield cluster
    finally:
        assert guard.stdin is not None
        assert guard.stdout is not None
        with suppress(BrokenPipeError):
            guard.stdin.close()
        _raise_down(_heard(guard))


def shut_down(project: Project, key: str) -> bool:
    """End all clusters of a run that are not known to be gone; return whether there were any.

    Raises:
        MachineError: ``cluster.down-failed``.
        SpecError: ``cluster.command``.
    """
    failed: list[DrawdownError] = []
    with Metastore.open(project.metastore_url) as metastore:
        metastore.clusters.adopt(LATE, key)
        found = metastore.clusters.of_key(key)
        for cluster in found:
            try:
                end(metastore.clusters, cluster, Programs(project, cluster))
            except DrawdownError as error:
                failed.append(error)
    if failed:
        raise failed[0]
    return bool(found)


def standing(project: Project, key: str) -> StartedCluster | None:
    """Return the cluster that an earlier task started for the run.

    None when there is none, and when `alive` says that it is not well: then its guard calls `down`.
    """
    with Metastore.open(project.metastore_url) as metastore:
        cluster = metastore.clusters.live(key)
        if cluster is None or cluster.answer is None:
            return None
        if Programs(project, cluster).why_not_alive():
            metastore.clusters.change(cluster.instance, to_end)
            return None
    return cluster


@contextmanager
def settings_of(request: CommandsRequest, cluster: StartedCluster) -> Iterator[Settings]:
    """Yield an application's settings for a cluster; the driver runs on this machine.

    Raises:
        MachineError: ``jars.missing``.
        SpecError: ``cluster.secret``.
    """
    project, profile, answer = request.project, request.profile, UpAnswer.of(cluster.answer or {})
    driver = answer.driver_host or _address_towards(*answer.address)
    conf = {
        "spark.master": answer.master,
        **sent_along(project),
        "spark.executor.cores": str(cluster.cores),
        "spark.executor.memory": cluster.memory,
        "spark.driver.host": driver,
        "spark.driver.bindAddress": _address_towards(*answer.address),
    }
    private = _private_settings(project, profile)
    try:
        yield Settings(conf_of(project, profile, conf), private)
    finally:
        if private is not None:
            shutil.rmtree(private.parent, ignore_errors=True)


def refuse_unusable(project: Project, profile: CommandsCluster) -> None:
    """Refuse what can be seen before anything is started.

    Raises:
        SpecError: ``cluster.command``, ``cluster.storage``.
    """
    require_programs(project, profile)
    if "://" not in project.storage_root.removeprefix("file://") and not profile.shared_disk:
        raise SpecError(
            "cluster.storage",
            "the workers of kind commands run elsewhere, and the storage root is a folder of this machine",
            where="include/project.yaml",
            do="set `storage_root:` to an address, for example s3a://bucket/folder; or, if the workers see"
            " the same folders as this machine, say `shared_disk: true` in the cluster",
        )


def _start(request: CommandsRequest) -> tuple[StartedCluster, subprocess.Popen[bytes]]:
    """Start a cluster; return it and its guard, the end of whose standard input ends the cluster."""
    project = request.project
    refuse_unusable(project, request.profile)
    _secret(request.profile)
    # Check for missing jars before anything is started.
    jar_paths(machine_root(project.root) / ".drawdown", CONNECTORS)
    with Metastore.open(project.metastore_url) as metastore:
        begun = request.record(metastore.now())
        metastore.clusters.begin(begun, request.replaces)
    guard = subprocess.Popen(
        [sys.executable, "-m", "drawdown.launch.commands.guard", str(project.root), begun.instance],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        # The guard forks itself, and this process ends.
        guard.wait()
        _raise_up(_heard(guard))
        with Metastore.open(project.metastore_url) as metastore:
            cluster = metastore.clusters.read(begun.instance)
        if cluster is None or cluster.state != "up":
            raise given_up(begun)
        return cluster, guard
    except BaseException:
        assert guard.stdin is not None
        with suppress(BrokenPipeError):
            guard.stdin.close()
        raise


def _heard(guard: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Return the guard's next line; empty when it is gone."""
    assert guard.stdout is not None
    line = guard.stdout.readline()
    return dict(json.loads(line)) if line else {}


def _raise_up(said: dict[str, Any]) -> None:
    if "up" in said:
        return
    if not said:
        raise MachineError(
            "cluster.up-failed",
            "the process that called `up` ended without an answer",
            where="a cluster of kind commands",
            do="look at the machine's log: was it killed? `down` is called after the deadline by"
            " drawdown__freshness",
        )
    error = _error(said["kind"], said["error"])
    if said["down"] is not None:
        error.what += f"; then: {said['down']['what']}"
    raise error


def _raise_down(said: dict[str, Any]) -> None:
    if (error := said.get("down")) is not None:
        raise _error("MachineError", error)


def _error(kind: str, parts: dict[str, str]) -> DrawdownError:
    known: type[DrawdownError] = getattr(errors, kind, MachineError)
    return known(parts["id"], parts["what"], where=parts["where"], do=parts["do"])


def _secret(profile: CommandsCluster) -> str | None:
    """Return the secret that the cluster asks for. Raises SpecError ``cluster.secret``."""
    if profile.spark_secret is None:
        return None
    if secret := os.environ.get(profile.spark_secret):
        return secret
    raise SpecError(
        "cluster.secret",
        f"the cluster asks for a secret, and the variable {profile.spark_secret} is not set",
        where="`spark_secret:` of the cluster in include/project.yaml",
        do=f"set {profile.spark_secret} in the environment of Airflow's tasks and of this command",
    )


def _private_settings(project: Project, profile: CommandsCluster) -> Path | None:
    """Write the secret into a file of mode 0600 in a folder of its own; None when there is no secret."""
    secret = _secret(profile)
    if secret is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=private_folder(project.state_dir / "runs")))
    file = folder / "spark.properties"
    file.touch(mode=0o600)
    settings = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secret,
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.saslFallback": "false",
        "spark.io.encryption.enabled": "true",
    }
    file.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    return file


def _address_towards(host: str, port: int) -> str:
    """Return this machine's address on the way to another, which sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, port))
        return str(probe.getsockname()[0])
