"""``python -m drawdown.launch.commands.guard ROOT KEY``: bring one cluster up, and see that it is taken down.

cluster.py starts it in a session of its own, once the metastore knows the cluster. In order:

1. call `up`, and `alive`; when that fails, or the starter goes away meanwhile: step 4;
2. answer on standard output: a line of JSON;
3. wait until the starter is gone, the deadline is reached or the record of the cluster is removed, because
   its run has ended it. The starter's end is that of standard input, a pipe; if it sends the word KEEP
   before, the cluster goes on without it;
4. call `down`, remove the record of the cluster, and answer by another line. If `down` fails, the record
   stays, with a deadline that has passed: reaper.py calls `down` again;
5. while the metastore is away, as it is for a host that was cut off, no other process learns that the cluster
   must end: then go on with step 4 until the deadline.

If it is killed itself, the record stays as well.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from drawdown.errors import DrawdownError, MachineError
from drawdown.launch.commands.reaper import LATE
from drawdown.launch.commands.request import Programs
from drawdown.metastore import Metastore
from drawdown.metastore.records import StartedCluster
from drawdown.processes.closed import close_to_others
from drawdown.spec import load_project

KEEP = b"keep\n"
_LOOK_EVERY = 0.5
_RECORD_EVERY = 10.0
"""Seconds between two looks at the record of the cluster."""

_METASTORE = "metastore."
"""Begins the ids of errors that are not about the cluster."""


class ClusterGuard:
    """Steps 1 to 4 for the cluster that is recorded under a key."""

    def __init__(self, root: Path, key: str) -> None:
        self._project = load_project(root)
        self._key = key
        self._asked = False
        self._kept = False
        self._gone = False
        self._ends_at = 0.0
        signal.signal(signal.SIGTERM, self._on_signal)

    def run(self) -> None:
        cluster = self._read()
        if cluster is None:
            return
        self._ends_at = time.monotonic() + self._seconds_left(cluster)
        programs = Programs(self._project, cluster)
        try:
            answer = programs.up(self._must_end)
            self._metastore(lambda store: store.clusters.note_answer(self._key, answer.model_dump()))
            cluster = self._read() or cluster
            programs = Programs(self._project, cluster)
            if why := programs.why_not_alive():
                raise not_alive(cluster, why)
        except DrawdownError as error:
            down = self._end(programs)
            _say({"error": error.as_dict(), "kind": type(error).__name__, "down": _of(down)})
            self._go_on_ending(programs, down)
            return
        _say({"up": answer.model_dump()})
        if self._wait(cluster):
            down = self._end(programs)
            _say({"down": _of(down)})
            self._go_on_ending(programs, down)

    def _wait(self, cluster: StartedCluster) -> bool:
        """Return whether the cluster must be taken down: not when its run has done so."""
        look_at = time.monotonic() + _RECORD_EVERY
        while not self._must_end():
            now = time.monotonic()
            if self._kept and (now > look_at or now > self._ends_at):
                look_at = now + _RECORD_EVERY
                if self._is_of_another(cluster):
                    return False
            if now > self._ends_at:
                return True
            time.sleep(_LOOK_EVERY)
        return True

    def _is_of_another(self, cluster: StartedCluster) -> bool:
        """Whether the run has taken it down, or has started one again, which has a guard of its own."""
        # A metastore that is away is no reason to end a cluster.
        with suppress(DrawdownError):
            found = self._read()
            return found is None or found.until != cluster.until
        return False

    def _must_end(self) -> bool:
        """Whether the starter is gone, or somebody has asked for the end."""
        if not self._kept and not self._gone and select.select([0], [], [], 0)[0]:
            said = os.read(0, len(KEEP))
            self._kept, self._gone = said == KEEP, said != KEEP
        return self._asked or self._gone

    def _end(self, programs: Programs) -> DrawdownError | None:
        """Call `down` and note it; return what failed."""
        try:
            self._metastore(lambda store: take_down(programs, store))
        except DrawdownError as error:
            if error.id.startswith(_METASTORE):
                # What costs money ends, whether that can be noted or not.
                with suppress(DrawdownError):
                    programs.down()
            return error
        return None

    def _go_on_ending(self, programs: Programs, failed: DrawdownError | None) -> None:
        """Repeat `_end` while the metastore is away; from the deadline on, others call `down`."""
        cluster = programs.cluster
        while failed is not None and failed.id.startswith(_METASTORE) and time.monotonic() < self._ends_at:
            time.sleep(_RECORD_EVERY)
            if self._is_of_another(cluster):
                return
            failed = self._end(programs)

    def _on_signal(self, *_: object) -> None:
        self._asked = True

    def _read(self) -> StartedCluster | None:
        found: StartedCluster | None = self._metastore(lambda store: store.clusters.read(self._key))
        return found

    def _seconds_left(self, cluster: StartedCluster) -> float:
        """Until the deadline, which is by the metastore's clock: this machine's may be another."""
        left: timedelta = self._metastore(lambda store: cluster.until - store.now())
        return left.total_seconds()

    def _metastore(self, work: Any) -> Any:
        with Metastore.open(self._project.metastore_url) as metastore:
            return work(metastore)


def take_down(programs: Programs, metastore: Metastore) -> None:
    """End a cluster and remove its record; a failure leaves the record, with its deadline passed.

    Raises:
        MachineError: ``cluster.down-failed``.
        SpecError: ``cluster.command``.
    """
    key = programs.cluster.cluster_key
    try:
        programs.down()
    except DrawdownError:
        metastore.clusters.end_by(key, metastore.now() - LATE)
        raise
    metastore.clusters.forget(key)


def not_alive(cluster: StartedCluster, why: str) -> MachineError:
    """Return the error for a cluster whose `alive` says that it is not well."""
    return MachineError(
        "cluster.not-alive",
        f"`alive` {why}",
        where=f"cluster {cluster.profile} in include/project.yaml",
        do="`alive` has to end with exit code 0 once `up` has ended; what `up` had begun is ended by `down`",
    )


def _of(error: DrawdownError | None) -> dict[str, str] | None:
    return None if error is None else error.as_dict()


def _say(what: dict[str, Any]) -> None:
    # The starter may be gone.
    with suppress(OSError):
        os.write(1, f"{json.dumps(what)}\n".encode())


def main(arguments: list[str]) -> int:
    """Run the guard of one cluster."""
    # It has its task's whole environment, for the secrets of the project's programs.
    close_to_others()
    if os.fork():
        # It may outlive its starter, whose resource use must not include its own.
        os._exit(0)
    ClusterGuard(Path(arguments[0]), arguments[1]).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
