"""``python -m drawdown.launch.standalone.supervisor FOLDER``: start, watch and end one standalone cluster.

cluster.py starts it in its own session, with the folder's lock. In order:

1. start a master on free ports of the loopback interface, and wait until it answers;
2. start the workers, and wait until the master has all of them;
3. write the master's address into the record: only now can others use the cluster;
4. wait until it is asked to end (SIGTERM), its time is up, a daemon dies, or the process that started it is
   gone: standard input is a pipe from that process, and ends without the word KEEP;
5. kill all descendants and remove the folder; the log stays unless it was asked to end.

The daemons die with the supervisor (PR_SET_PDEATHSIG), and executors when they lose their worker. So at most
a supervisor can be left behind; it ends by itself at step 4, or reaper.py ends it.
"""

from __future__ import annotations

import http.client
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from drawdown.jvm.spark_home import spark_home
from drawdown.launch.standalone.cluster_folder import ClusterFolder, ClusterRecord
from drawdown.processes.descendants import adopt_orphans, end_with_parent, kill_descendants, reap, wakeup_on
from drawdown.processes.ports import LOOPBACK, free_ports

KEEP = b"keep\n"
"""Sent by the starter to let the cluster continue without it."""

STARTS_WITHIN = 300.0
"""Seconds for steps 1 and 2; long, because a busy machine may need several times what an idle one does."""

_LOOK_EVERY = 0.1
_END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Over(Exception):
    """The cluster ends; the message says why."""

    def __init__(self, why: str, *, expected: bool = False) -> None:
        super().__init__(why)
        self.expected = expected


class ClusterSupervisor:
    """Steps 1 to 5 for the record in a folder."""

    def __init__(self, folder: ClusterFolder, record: ClusterRecord) -> None:
        self._folder = folder
        self._record = record
        self._daemons: dict[int, str] = {}
        self._starts_until: float | None = time.monotonic() + STARTS_WITHIN
        self._wakeup = wakeup_on(*_END_SIGNALS, signal.SIGCHLD)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wakeup, selectors.EVENT_READ)
        self._selector.register(0, selectors.EVENT_READ)
        # The record's time is for others; the monotonic clock here does not jump when the clock is set.
        self._ends_at = time.monotonic() + record.until - time.time()

    def keep(self) -> bool:
        """Do all steps; return whether the end was requested."""
        expected = False
        try:
            self._start()
            self._until(lambda: False)
        except _Over as over:
            expected = over.expected
            print(f"drawdown: {over}", flush=True)
        finally:
            # No clean stop is needed: all their files are in the folder, too.
            kill_descendants()
        return expected

    def _start(self) -> None:
        record, [page] = self._record, free_ports(1)
        where = ("--host", LOOPBACK, "--webui-port")
        self._daemon("the master", "master.Master", *where, str(page), "--port", "0")
        self._until(lambda: "url" in _status(page))
        master = str(_status(page)["url"])
        for number in range(1, record.workers + 1):
            self._daemon(
                f"worker {number}",
                "worker.Worker",
                *(*where, "0", "--cores", str(record.cores), "--memory", record.memory),
                *("--work-dir", str(self._folder.path / "work" / str(number)), master),
            )
        self._until(lambda: _status(page).get("aliveworkers") == record.workers)
        self._folder.note(master=master)
        self._starts_until = None

    def _daemon(self, name: str, kind: str, *arguments: str) -> None:
        command = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
        process = subprocess.Popen(
            [*command, "--properties-file", str(self._folder.properties), *arguments],
            stdin=subprocess.DEVNULL,
            preexec_fn=end_with_parent,
        )
        self._daemons[process.pid] = name

    def _until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds. Raises _Over when the cluster must end before."""
        while not holds():
            self._look()

    def _look(self) -> None:
        """Wait a moment for an event. Raises _Over when it ends the cluster."""
        left = self._ends_at - time.monotonic()
        wait = max(left, 0) if self._starts_until is None else _LOOK_EVERY
        ready = {key.fd for key, _ in self._selector.select(wait)}
        if self._wakeup in ready and set(os.read(self._wakeup, 4096)) & set(_END_SIGNALS):
            raise _Over("asked to end", expected=True)
        if 0 in ready:
            self._hear()
        for pid, code in reap().items():
            if pid in self._daemons:
                raise _Over(f"{self._daemons[pid]} ended with exit code {code}")
        if time.monotonic() >= self._ends_at:
            raise _Over("its time (ttl) is up")
        if self._starts_until is not None and time.monotonic() > self._starts_until:
            raise _Over(f"not all daemons were up after {STARTS_WITHIN:.0f} s")

    def _hear(self) -> None:
        if os.read(0, len(KEEP)) != KEEP:
            raise _Over("whoever started it is gone", expected=True)
        self._selector.unregister(0)


def _status(page: int) -> dict[str, Any]:
    """Return the master's status; empty while it does not answer."""
    connection = http.client.HTTPConnection(LOOPBACK, page, timeout=5)
    try:
        connection.request("GET", "/json/")
        answer: dict[str, Any] = json.load(connection.getresponse())
    except (OSError, ValueError, http.client.HTTPException):
        return {}
    finally:
        connection.close()
    return answer


def main(arguments: list[str]) -> int:
    """Run the supervisor; return 0 when the end was requested, else 1."""
    folder = ClusterFolder(Path(arguments[0]))
    if os.fork():
        # The supervisor may outlive its starter, whose resource use must not include the supervisor's.
        os._exit(0)
    record = folder.note(keeper=os.getpid())
    adopt_orphans()
    expected = ClusterSupervisor(folder, record).keep()
    if expected:
        folder.log.unlink(missing_ok=True)
    folder.remove()
    return 0 if expected else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
