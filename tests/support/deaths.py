"""A drain in a process of its own, `drawdown run`, in which a fault strikes at a named step."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence

from drawdown.fault_points import FAULT
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT


def start_apart(
    sandbox: Sandbox, name: str, fault: str = "", command: str = "run", **environment: str
) -> subprocess.Popen[str]:
    """`drawdown COMMAND NAME` in a process group of its own; `fault` as in DRAWDOWN_FAULT."""
    return start_command(sandbox, [*command.split(), name], fault, **environment)


def start_command(
    sandbox: Sandbox, words: Sequence[str], fault: str = "", **environment: str
) -> subprocess.Popen[str]:
    """Any of `drawdown`'s commands, as `start_apart`."""
    return subprocess.Popen(
        [sys.executable, "-c", "from drawdown.cli.main import main; main()", *words],
        cwd=sandbox.root,
        env={**os.environ, FAULT: fault, "PYTHONPATH": f"{ROOT / 'include'}", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run_apart(
    sandbox: Sandbox, name: str, fault: str = "", command: str = "run", **environment: str
) -> subprocess.CompletedProcess[str]:
    """To its end."""
    process = start_apart(sandbox, name, fault, command, **environment)
    said, _ = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, said)


def die(sandbox: Sandbox, name: str, moment: str, command: str = "run") -> None:
    """Drain a pipeline until a moment such as ``after batch.note 2``; its lease is free afterwards."""
    job = run_apart(sandbox, name, f"kill {moment}", command)
    assert job.returncode == -signal.SIGKILL, f"it lived through {moment}: {job.stdout}"
    free_lease(sandbox)


def free_lease(sandbox: Sandbox) -> None:
    """Instead of waiting for a dead holder's time-to-live."""
    with sqlite3.connect(sandbox.root / "metastore.db") as store:
        store.execute("UPDATE leases SET released = 1")
