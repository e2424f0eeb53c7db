"""A drain in a process of its own that is killed at a named moment, driver and JVM together."""

from __future__ import annotations

import os
import shlex
import signal
import sqlite3
import subprocess
import sys

from drawdown.machine.archive import driver_conf
from tests.support.spark import ROOT
from tests.support.workspace import Workspace

# "before" or "after", the call (see dying_job.py), and which one of that name.
Moment = tuple[str, str, int]


def die(workspace: Workspace, name: str, moment: Moment) -> None:
    """Drain a pipeline until the moment; its lease is free afterwards."""
    conf = {**driver_conf(ROOT), "spark.ui.enabled": "false", "spark.driver.memory": "1g"}
    arguments = ["--master", "local[2]"]
    arguments += [part for item in conf.items() for part in ("--conf", "=".join(item))]
    job = subprocess.run(
        [sys.executable, "-m", "tests.support.dying_job", str(workspace.root), name, *map(str, moment)],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": shlex.join([*arguments, "pyspark-shell"])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=False,
    )
    assert job.returncode == -signal.SIGKILL, f"it lived through {moment}"
    with sqlite3.connect(workspace.root / "metastore.db") as store:
        store.execute("UPDATE leases SET released = 1")  # instead of waiting for the time-to-live
