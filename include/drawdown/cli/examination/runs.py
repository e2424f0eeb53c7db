"""What `drawdown doctor` sees of runs: the metastore, its clock, dead runs, drivers that outlived theirs."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from drawdown.cli.examination.clock import clock
from drawdown.cli.examination.finding import Finding
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run
from drawdown.process_tree import tree_of, use_of
from drawdown.spec import Project, pipeline_names

_NEEDED_BY = "leases and costs go by the one, files that settle and replays by the other"
_RUNS = 200
_STARTING = timedelta(seconds=0.3)
"""A driver takes longer before its first run begins; a clock that is corrected moves by less."""
_HOLDER = re.compile(r"(?P<host>.+) pid (?P<pid>[0-9]+)")
"""As `drawdown.metastore.this_process` writes it."""


def metastore_and_runs(project: Project) -> Iterator[Finding]:
    with Metastore.open(project.metastore_url) as metastore:
        yield Finding("metastore", "ok", "can be reached, and has this program's schema")
        asked = datetime.now(UTC)
        theirs = metastore.now()
        yield clock("metastore", theirs, asked, datetime.now(UTC), _NEEDED_BY)
        dead = []
        for side, mends in ((metastore, "run"), (metastore.of_rebuilds, "rebuild start")):
            yield from _held(project, side)
            for run in _without_lease(project, side):
                dead.append(run)
                what = f"run {run.run_id} of {run.pipeline} ended without a word: nobody holds its lease"
                yield Finding("leases", "warn", what, f"drawdown {mends} {run.pipeline}")
        dead += [run for run in metastore.runs(limit=_RUNS) if run.state == "crashed"]
        yield from _drivers(metastore, dead)


def _held(project: Project, metastore: Metastore) -> Iterator[Finding]:
    for name in pipeline_names(project):
        held = metastore.holder_of(name)
        if held is not None:
            until = f"{held.expires_at:%H:%M:%S} UTC"
            yield Finding("leases", "ok", f"{name} is held by {held.holder} until {until}")


def _without_lease(project: Project, metastore: Metastore) -> Iterator[Run]:
    """Runs that say they go on, whose holder has lost the lease or left it behind."""
    for name in pipeline_names(project):
        open_runs = metastore.open_runs(name)
        held = metastore.holder_of(name)
        yield from (run for run in open_runs if held is None or held.run_id != run.run_id)


def _drivers(metastore: Metastore, dead: list[Run]) -> Iterator[Finding]:
    for run in dead:
        found = _HOLDER.fullmatch(run.holder)
        if found is None or found["host"] != socket.gethostname() or run.started_at is None:
            continue
        pid = int(found["pid"])
        used = use_of(pid)
        if used is None or pid == os.getpid():
            continue
        # The age first, then the time: on a busy machine a process seems younger than it is, never older.
        began = metastore.now() - timedelta(microseconds=used.age_us)
        if began > run.started_at - _STARTING:
            continue  # it has only got the number
        if _is_driver(pid):
            what = f"process {pid} goes on although its run {run.run_id} of {run.pipeline} is dead"
            pids = " ".join(str(each) for each in tree_of(pid))
            yield Finding("drivers", "warn", what, f"kill -9 {pids}")


def _is_driver(pid: int) -> bool:
    try:
        return b"drawdown" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
