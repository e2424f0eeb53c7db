"""``python -m drawdown.launch.standalone.supervisor FOLDER``: start, watch and end one standalone cluster.

cluster.py starts it in its own session, with the folder's lock. In order:

1. start a master on free ports of the profile's `host`, and wait until it answers;
2. start the workers, and wait until the master has all of them;
3. write the master's address into the record: only now can others use the cluster;
4. start each worker that dies again, up to three times, then go on with the others;
5. wait until it is asked to end (SIGTERM, or a file that another machine has written), its time is up, the
   master or the last worker dies, or the process that started it is gone: standard input is a pipe from that
   process, and ends without the word KEEP;
6. kill all descendants and remove the folder; the log stays unless it was asked to end.

The daemons die with the supervisor (PR_SET_PDEATHSIG), and executors when they lose their worker. So at most
a supervisor can be left behind; it ends by itself at step 5, or reaper.py ends it.
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from drawdown.jvm.spark_home import spark_home
from drawdown.launch.standalone.cluster_folder import ASKED_EVERY, ClusterFolder, ClusterRecord
from drawdown.launch.standalone.page_token import KEY, token
from drawdown.launch.standalone.private_settings import private_setting
from drawdown.processes.descendants import adopt_orphans, end_with_parent, kill_descendants, reap, wakeup_on
from drawdown.processes.identity import started
from drawdown.processes.ports import free_ports

KEEP = b"keep\n"
"""Sent by the starter to let the cluster continue without it."""

STARTS_WITHIN = 300.0
"""Seconds for steps 1 and 2; long, because a busy machine may need several times what an idle one does."""

_LOOK_EVERY = 0.1
_STARTED_AGAIN = 3
"""How often a worker is replaced. One that dies each time, for example for want of memory, would not stop."""
_END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Over(Exception):
    """The cluster ends; the message says why."""

    def __init__(self, why: str, *, expected: bool = False) -> None:
        super().__init__(why)
        self.expected = expected


@dataclass(frozen=True)
class _Worker:
    """A worker: its command's arguments, and how often it was started again."""

    number: int
    arguments: tuple[str, ...]
    replaced: int = 0


class ClusterSupervisor:
    """Steps 1 to 6 for the record in a folder."""

    def __init__(self, folder: ClusterFolder, record: ClusterRecord) -> None:
        self._folder = folder
        self._record = record
        self._master: int | None = None
        self._workers: dict[int, _Worker] = {}
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
        record = self._record
        [page] = free_ports(1, record.host)
        where = ("--host", record.host, "--webui-port")
        status = partial(_status, record.host, page, self._headers())
        self._master = self._daemon("master.Master", *where, str(page), "--port", "0")
        self._until(lambda: "url" in status())
        master = str(status()["url"])
        size = ("--cores", str(record.cores), "--memory", record.memory)
        for number in range(1, record.workers + 1):
            work = str(self._folder.path / "work" / str(number))
            self._begin(_Worker(number, (*where, "0", *size, "--work-dir", work, master)))
        self._until(lambda: status().get("aliveworkers") == record.workers)
        self._folder.note(master=master)
        self._starts_until = None

    def _headers(self) -> dict[str, str]:
        key = private_setting(self._folder.properties, KEY)
        return {} if key is None else {"Authorization": token(key)}

    def _begin(self, worker: _Worker) -> None:
        self._workers[self._daemon("worker.Worker", *worker.arguments)] = worker

    def _daemon(self, kind: str, *arguments: str) -> int:
        command = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
        process = subprocess.Popen(
            [*command, "--properties-file", str(self._folder.properties), *arguments],
            stdin=subprocess.DEVNULL,
            preexec_fn=end_with_parent,
        )
        return process.pid

    def _until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds. Raises _Over when the cluster must end before."""
        while not holds():
            self._look()

    def _look(self) -> None:
        """Wait a moment for an event. Raises _Over when it ends the cluster."""
        left = self._ends_at - time.monotonic()
        wait = min(max(left, 0), ASKED_EVERY) if self._starts_until is None else _LOOK_EVERY
        ready = {key.fd for key, _ in self._selector.select(wait)}
        if self._wakeup in ready and set(os.read(self._wakeup, 4096)) & set(_END_SIGNALS):
            raise _Over("asked to end", expected=True)
        if 0 in ready:
            self._hear()
        if self._folder.asked.exists():
            raise _Over("asked to end by another machine", expected=True)
        for pid, code in reap().items():
            if pid == self._master:
                raise _Over(f"the master ended with exit code {code}")
            if pid in self._workers:
                self._replace(self._workers.pop(pid), code)
        if time.monotonic() >= self._ends_at:
            raise _Over("its time (ttl) is up")
        if self._starts_until is not None and time.monotonic() > self._starts_until:
            raise _Over(f"not all daemons were up after {STARTS_WITHIN:.0f} s")

    def _replace(self, worker: _Worker, code: int) -> None:
        """Start a worker that ended again. Raises _Over while the cluster starts, and when none is left."""
        why = f"worker {worker.number} ended with exit code {code}"
        if self._starts_until is not None:
            raise _Over(why)
        if worker.replaced < _STARTED_AGAIN:
            print(f"drawdown: {why}: started again", flush=True)
            self._begin(replace(worker, replaced=worker.replaced + 1))
        elif self._workers:
            print(f"drawdown: {why}, and again after each start: given up", flush=True)
        else:
            raise _Over(f"{why}, and no worker is left")

    def _hear(self) -> None:
        if os.read(0, len(KEEP)) != KEEP:
            raise _Over("whoever started it is gone", expected=True)
        self._selector.unregister(0)


def _status(host: str, page: int, headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the master's status; empty while it does not answer."""
    connection = http.client.HTTPConnection(host, page, timeout=5)
    try:
        connection.request("GET", "/json/", headers=dict(headers))
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
    record = folder.note(keeper=os.getpid(), keeper_started=started(os.getpid()))
    adopt_orphans()
    expected = ClusterSupervisor(folder, record).keep()
    if expected:
        folder.log.unlink(missing_ok=True)
    folder.remove()
    return 0 if expected else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
