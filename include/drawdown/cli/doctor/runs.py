"""Checks runs: the metastore, its clock, crashed runs, drivers that outlived their run."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import psutil

from drawdown.cli.doctor.clock import clock
from drawdown.cli.doctor.finding import Check
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run
from drawdown.processes.usage import tree_of, use_of
from drawdown.spec import Project, pipeline_names

if TYPE_CHECKING:
    from drawdown.workspace import Workspace

_NEEDED_BY = "leases and costs use one clock, `settle` and replays the other"
_RUNS = 200
_STARTING = timedelta(seconds=0.3)
"""A driver needs longer than this before its first run begins; clock corrections are smaller."""
_HOLDER = re.compile(r"(?P<host>.+) pid (?P<pid>[0-9]+)")
"""The format of `drawdown.metastore.this_process`."""


def metastore_and_runs(project: Project) -> Iterator[Check]:
    from drawdown.workspace import Workspace

    with Workspace.open(project) as workspace:
        yield Check("metastore", "ok", "can be reached, and its schema is supported")
        asked = datetime.now(UTC)
        theirs = workspace.metastore.now()
        yield clock("metastore", theirs, asked, datetime.now(UTC), _NEEDED_BY)
        dead = []
        for side, fixes in ((workspace.metastore, "run"), (workspace.metastore.of_rebuilds, "rebuild start")):
            yield from _held(Workspace(project, side))
            for run in _without_lease(Workspace(project, side)):
                dead.append(run)
                what = (
                    f"run {run.run_id} of {run.pipeline} ended without closing its record: its lease is"
                    " not held"
                )
                yield Check("leases", "warn", what, f"drawdown {fixes} {run.pipeline}")
        dead += [run for run in workspace.metastore.runs(limit=_RUNS) if run.state == "crashed"]
        yield from _drivers(workspace.metastore, dead)


def _held(
    workspace: Workspace,
) -> Iterator[Check]:
    for name in pipeline_names(workspace.project):
        held = workspace.metastore.holder_of(name)
        if held is not None:
            until = f"{held.expires_at:%H:%M:%S} UTC"
            yield Check("leases", "ok", f"{name} is held by {held.holder} until {until}")


def _without_lease(
    workspace: Workspace,
) -> Iterator[Run]:
    """Yield runs marked as running whose holder has lost or abandoned the lease."""
    for name in pipeline_names(workspace.project):
        open_runs = workspace.metastore.open_runs(name)
        held = workspace.metastore.holder_of(name)
        yield from (run for run in open_runs if held is None or held.run_id != run.run_id)


def _drivers(metastore: Metastore, dead: list[Run]) -> Iterator[Check]:
    for run in dead:
        found = _HOLDER.fullmatch(run.holder)
        if found is None or found["host"] != socket.gethostname() or run.started_at is None:
            continue
        pid = int(found["pid"])
        used = use_of(pid)
        if used is None or pid == os.getpid():
            continue
        # Read the age before the time: on a busy machine a process then seems younger than it is, never
        # older.
        began = metastore.now() - timedelta(microseconds=used.age_us)
        if began > run.started_at - _STARTING:
            continue  # the pid was reused by another process
        if _is_driver(pid):
            what = f"process {pid} still runs although its run {run.run_id} of {run.pipeline} is dead"
            pids = " ".join(str(each) for each in tree_of(pid))
            yield Check("drivers", "warn", what, f"kill -9 {pids}")


def _is_driver(pid: int) -> bool:
    try:
        return any("drawdown" in part for part in psutil.Process(pid).cmdline())
    except psutil.Error:
        return False
