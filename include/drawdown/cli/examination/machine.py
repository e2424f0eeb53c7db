"""What `drawdown doctor` sees of the machine: Java, ports, jars, disk, and what clusters have left on it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from drawdown.cli.examination.commands import as_root, setup
from drawdown.cli.examination.finding import Finding
from drawdown.spec import Project

_LITTLE_DISK = 2 * 1024**3


def java() -> Iterator[Finding]:
    from drawdown.machine.java import require_java

    java = require_java()
    yield Finding("java", "ok", f"Java {java.version} at {java.executable}")


def ports() -> Iterator[Finding]:
    from drawdown.machine.ports import LOOPBACK, listen_and_connect

    try:
        listen_and_connect()
    except OSError as cause:
        what = f"processes cannot reach each other at {LOOPBACK}: {cause.strerror or cause}"
        yield Finding("ports", "fail", what, as_root("ip link set lo up"))
    else:
        yield Finding("ports", "ok", f"Spark and Airflow can be reached at {LOOPBACK}")


def jars(project: Project) -> Iterator[Finding]:
    from drawdown.machine.home import machine_root
    from drawdown.machine.jars import CONNECTORS, check_jars, read_lock
    from drawdown.machine.own_jar import is_made

    root = machine_root(project.root)
    state_dir = root / ".drawdown"
    missing = check_jars(state_dir, [jar for jar in read_lock() if jar.folder == CONNECTORS])
    if missing:
        what = f"{len(missing)} connector jar(s) are not in {state_dir}"
        yield Finding("jars", "fail", what, setup(project))
    elif not is_made(root):
        what = f"the jar of Drawdown's own classes is not in {state_dir}"
        yield Finding("jars", "fail", what, setup(project))
    else:
        yield Finding("jars", "ok", f"connectors in {state_dir / CONNECTORS}, checksums right")


def archive(project: Project) -> Iterator[Finding]:
    from drawdown.machine.archive import archive_path
    from drawdown.machine.home import machine_root

    if archive_path(machine_root(project.root)) is None:
        what = "no class archive: Spark starts some seconds slower"
        yield Finding("archive", "warn", what, setup(project))
    else:
        yield Finding("archive", "ok", "class archive of the driver is there")


def disk(project: Project) -> Iterator[Finding]:
    free = shutil.disk_usage(project.root).free
    text = f"{free / 1024**3:,.1f} GiB free at {project.root}"
    if free < _LITTLE_DISK:
        what = f"{text}: state, staged files and logs need some"
        yield Finding("disk", "warn", what, "drawdown upkeep --all")
    else:
        yield Finding("disk", "ok", text)


def clusters(project: Project) -> Iterator[Finding]:
    """Those that run for a run are not told of."""
    from drawdown.clusters.reaper import left_over

    for cluster, why in left_over(project).items():
        what = f"the cluster in {cluster.path} {why}: nobody will end it"
        yield Finding("clusters", "warn", what, "drawdown upkeep --all")
