"""Checks the machine: Java, ports, jars, disk, and leftovers of clusters."""

from __future__ import annotations

import platform
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from drawdown.cli.doctor.commands import as_root, setup
from drawdown.cli.doctor.finding import Check
from drawdown.errors import DrawdownError
from drawdown.spec import Project
from drawdown.values.text import counted

_LITTLE_DISK = 2 * 1024**3


def java() -> Iterator[Check]:
    from drawdown.jvm.java import require_java

    java = require_java()
    yield Check("java", "ok", f"Java {java.version} at {java.executable}")


def launcher() -> Iterator[Check]:
    from drawdown.jvm.spark_start import check_launcher

    check_launcher()
    yield Check("spark", "ok", "its start script finds what it needs")


def interpreter() -> Iterator[Check]:
    """Whether other users of the machine, as Airflow's, can run this Python and this library."""
    for path in (Path(sys.executable), Path(sys.executable).resolve(), Path(__file__)):
        closed = [folder for folder in path.parents if not folder.stat().st_mode & stat.S_IXOTH]
        if closed:
            owner = _owner(closed[-1])
            what = f"only {owner} can run Drawdown: {path} is in {closed[-1]}, which no other user may enter"
            do = (
                f"run everything as {owner}; or install Python and Drawdown where all may enter, such as /opt"
            )
            yield Check("python", "warn", what, do)
            return
    yield Check("python", "ok", f"Python {platform.python_version()} at {sys.executable}, for all users")


def _owner(folder: Path) -> str:
    try:
        return folder.owner()
    except KeyError:  # a user without a name
        return f"user {folder.stat().st_uid}"


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
        what = f"missing in {state_dir}: {counted(len(missing), 'connector jar')}"
        yield Check("jars", "fail", what, setup(project))
    elif not is_made(root):
        what = f"the jar with Drawdown's own classes is missing in {state_dir}"
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
        yield Check("archive", "ok", "the driver's class archive exists")


def disk(project: Project) -> Iterator[Check]:
    free = shutil.disk_usage(project.root).free
    text = f"{free / 1024**3:,.1f} GiB free at {project.root}"
    if free < _LITTLE_DISK:
        what = f"{text}: state, staged files and logs need some"
        yield Check("disk", "warn", what, "drawdown upkeep --all")
    else:
        yield Check("disk", "ok", text)


def clusters(project: Project) -> Iterator[Check]:
    """Find abandoned clusters; those that serve a run are left out."""
    from drawdown.launch.standalone.reaper import left_over

    for cluster, why in left_over(project).items():
        what = f"the cluster in {cluster.path} {why}: no process will stop it"
        yield Check("clusters", "warn", what, "drawdown upkeep --all")


def started_clusters(project: Project) -> Iterator[Check]:
    """Find clusters of `kind: commands` that no run needs and that are not known to be gone."""
    from drawdown.fleet.started_clusters import red_clusters
    from drawdown.metastore import Metastore

    with suppress(DrawdownError), Metastore.open(project.metastore_url) as metastore:
        for cluster in red_clusters(metastore):
            what = f"the {cluster.sentence}: its machines may still be paid for"
            yield Check("clusters", "fail", what, cluster.do)


def temporary_files(project: Project) -> Iterator[Check]:
    """Find files that killed runs left in the system's temporary folder."""
    from drawdown.processes.scratch import left_over

    for folder in left_over():
        held = sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())
        what = f"{folder} contains {held / 1024**2:,.0f} MiB of temporary files of a killed run"
        yield Check("temporary", "warn", what, "drawdown upkeep --all")
