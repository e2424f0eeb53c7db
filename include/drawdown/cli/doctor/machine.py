"""What `drawdown doctor` sees of the machine: Java, ports, jars, disk, and what clusters have left on it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from drawdown.cli.doctor.commands import as_root, setup
from drawdown.cli.doctor.finding import Check
from drawdown.spec import Project

_LITTLE_DISK = 2 * 1024**3


def java() -> Iterator[Check]:
    from drawdown.jvm.java import require_java

    java = require_java()
    yield Check("java", "ok", f"Java {java.version} at {java.executable}")


def ports() -> Iterator[Check]:
    from drawdown.processes.ports import LOOPBACK, listen_and_connect

    try:
        listen_and_connect()
    except OSError as cause:
        what = f"processes cannot reach each other at {LOOPBACK}: {cause.strerror or cause}"
        yield Check("ports", "fail", what, as_root("ip link set lo up"))
    else:
        yield Check("ports", "ok", f"Spark and Airflow can be reached at {LOOPBACK}")


def jars(project: Project) -> Iterator[Check]:
    from drawdown.jvm.home import machine_root
    from drawdown.jvm.jars import CONNECTORS, check_jars, read_lock
    from drawdown.jvm.own_jar import is_made

    root = machine_root(project.root)
    state_dir = root / ".drawdown"
    missing = check_jars(state_dir, [jar for jar in read_lock() if jar.folder == CONNECTORS])
    if missing:
        what = f"{len(missing)} connector jar(s) are not in {state_dir}"
        yield Check("jars", "fail", what, setup(project))
    elif not is_made(root):
        what = f"the jar of Drawdown's own classes is not in {state_dir}"
        yield Check("jars", "fail", what, setup(project))
    else:
        yield Check("jars", "ok", f"connectors in {state_dir / CONNECTORS}, checksums right")


def archive(project: Project) -> Iterator[Check]:
    from drawdown.jvm.class_archive import archive_path
    from drawdown.jvm.home import machine_root

    if archive_path(machine_root(project.root)) is None:
        what = "no class archive: Spark starts some seconds slower"
        yield Check("archive", "warn", what, setup(project))
    else:
        yield Check("archive", "ok", "class archive of the driver is there")


def disk(project: Project) -> Iterator[Check]:
    free = shutil.disk_usage(project.root).free
    text = f"{free / 1024**3:,.1f} GiB free at {project.root}"
    if free < _LITTLE_DISK:
        what = f"{text}: state, staged files and logs need some"
        yield Check("disk", "warn", what, "drawdown upkeep --all")
    else:
        yield Check("disk", "ok", text)


def clusters(project: Project) -> Iterator[Check]:
    """Those that serve a run are left out."""
    from drawdown.launch.standalone.reaper import left_over

    for cluster, why in left_over(project).items():
        what = f"the cluster in {cluster.path} {why}: nobody will end it"
        yield Check("clusters", "warn", what, "drawdown upkeep --all")


def temporary_files(project: Project) -> Iterator[Check]:
    """What killed runs have left in the system's temporary folder; those of live runs are left out."""
    from drawdown.processes.scratch import left_over

    for folder in left_over():
        held = sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())
        what = f"{folder} holds {held / 1024**2:,.1f} MiB of temporary files of a run that was killed"
        yield Check("temporary", "warn", what, "drawdown upkeep --all")
