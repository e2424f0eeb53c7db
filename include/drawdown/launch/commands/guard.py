"""``python -m drawdown.launch.commands.guard ROOT INSTANCE``: bring one cluster up, and see it taken down.

cluster.py starts it in a session of its own, once the metastore knows the cluster. In order:

1. call `up`, and `alive`; when that fails, or the starter goes away meanwhile: step 4;
2. answer on standard output: a line of JSON;
3. wait until the starter is gone, the deadline is reached, the record says that the cluster is to end, or it
   is removed. The starter's end is that of standard input, a pipe; if it sends the word KEEP before, the
   cluster goes on without it;
4. call `down`, note how it ended, and answer by another line. If `down` has failed it is called again, with a
   growing pause, until it has ended well, by this process or another one: see life.py;
5. while the metastore is away, as it is for a host that was cut off, no other process learns that the cluster
   must end: then go on with step 4, and call `down` whether that can be noted or not.

It knows one instance. If it is killed itself, the record stays as well.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from drawdown.errors import DrawdownError, MachineError
from drawdown.launch.commands.answer import UpAnswer
from drawdown.launch.commands.life import came_up, ending, is_due, to_end
from drawdown.launch.commands.request import Programs
from drawdown.metastore import Metastore
from drawdown.metastore.operations.clusters import Transition
from drawdown.metastore.records import StartedCluster
from drawdown.processes.closed import close_to_others
from drawdown.spec import Project, load_project

KEEP = b"keep\n"
_LOOK_EVERY = 0.5
_RECORD_EVERY = 10.0
"""Seconds between two looks at the record of the cluster."""

_TRIES_FOR = timedelta(days=1)
"""Time past its deadline after which a guard leaves a cluster whose `down` fails to the tasks."""

_METASTORE = "metastore."
"""Begins the ids of errors that are not about the cluster."""


class ReconnectingStore:
    """The records of clusters, with a connection for each question: a guard lives for hours."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def read(self, instance: str) -> tuple[StartedCluster | None, datetime]:
        """Return the record, and the time by the metastore's clock: this machine's may be another."""
        with Metastore.open(self._project.metastore_url) as metastore:
            return metastore.clusters.read(instance), metastore.now()

    def change(self, instance: str, transition: Transition) -> StartedCluster | None:
        with Metastore.open(self._project.metastore_url) as metastore:
            return metastore.clusters.change(instance, transition)

    def restore(self, cluster: StartedCluster) -> None:
        with Metastore.open(self._project.metastore_url) as metastore:
            metastore.clusters.restore(cluster)


class Starter(Protocol):
    """The process that wants the cluster: it keeps it, or it is gone."""

    def is_kept(self) -> bool: ...

    def must_end(self) -> bool:
        """Whether it is gone without having kept the cluster, or somebody has asked for the end."""

    def hear(self, said: dict[str, Any]) -> None: ...


class ClusterGuard:
    """Steps 1 to 5 for one instance."""

    def __init__(
        self,
        store: ReconnectingStore,
        instance: str,
        programs_of: Callable[[StartedCluster], Programs],
        starter: Starter,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._instance = instance
        self._programs_of = programs_of
        self._starter = starter
        self._seconds = seconds
        self._look_at = 0.0
        self._ends_at = 0.0

    def steps(self) -> Generator[bool]:
        """Guard the cluster; a step ends where a process may be killed. Yields whether to wait a moment."""
        cluster, now = self._store.read(self._instance)
        if cluster is None:
            return
        self._ends_at = self._seconds() + (cluster.deadline - now).total_seconds()
        try:
            cluster = yield from self._brought_up(cluster)
        except DrawdownError as error:
            yield False
            down = yield from self._end(cluster)
            self._starter.hear({"error": error.as_dict(), "kind": type(error).__name__, "down": _of(down)})
            yield from self._until_gone(cluster)
            return
        self._starter.hear({"up": cluster.answer})
        yield from self._while_used()
        if self._starter.must_end():
            down = yield from self._end(cluster)
            self._starter.hear({"down": _of(down)})
        yield from self._until_gone(cluster)

    def _brought_up(self, cluster: StartedCluster) -> Generator[bool, None, StartedCluster]:
        """Call `up` and note its answer; return the record."""
        if cluster.state != "starting":
            raise given_up(cluster)
        programs = self._programs_of(cluster)
        answer: UpAnswer = programs.up(self._starter.must_end)
        yield False
        noted = self._store.change(self._instance, came_up(answer.model_dump()))
        if noted is None or noted.state != "up":
            raise given_up(cluster)
        yield False
        if why := self._programs_of(noted).why_not_alive():
            raise not_alive(noted, why)
        return noted

    def _while_used(self) -> Generator[bool]:
        """Wait until the cluster has to end, or has ended."""
        while not self._starter.must_end():
            yield True
            # A metastore that is away is no reason to end a cluster before its deadline.
            with suppress(DrawdownError):
                if self._may_look():
                    found, now = self._store.read(self._instance)
                    if found is None or found.state != "up" or is_due(found, now, timedelta()):
                        return
            if self._seconds() > self._ends_at and not self._is_known():
                return

    def _may_look(self) -> bool:
        """Whether the record is to be read: not while the starter is there to speak for itself."""
        now = self._seconds()
        if not self._starter.is_kept() or (now < self._look_at and now < self._ends_at):
            return False
        self._look_at = now + _RECORD_EVERY
        return True

    def _is_known(self) -> bool:
        """Whether the metastore can be asked, whose clock decides."""
        with suppress(DrawdownError):
            found, now = self._store.read(self._instance)
            return found is not None and not is_due(found, now, timedelta())
        return False

    def _until_gone(self, cluster: StartedCluster) -> Generator[bool]:
        """Call `down` whenever it is due, until the record is gone."""
        look_at = 0.0
        while True:
            if self._seconds() >= look_at:
                look_at = self._seconds() + _RECORD_EVERY
                try:
                    found, now = self._store.read(self._instance)
                    if found is None or now > cluster.deadline + _TRIES_FOR:
                        return
                    if is_due(found, now, timedelta()):
                        yield from self._end(cluster, only_if_due=found.state not in ("starting", "up"))
                        continue
                except DrawdownError:
                    yield from self._unnoted(cluster)
                    if self._seconds() > self._ends_at:
                        return  # Others see it by its deadline.
            yield True

    def _end(
        self, cluster: StartedCluster, *, only_if_due: bool = False
    ) -> Generator[bool, None, DrawdownError | None]:
        """Call `down` once and note it; return what failed."""
        programs = self._programs_of(cluster)
        try:
            if not only_if_due:
                # Another process may have ended it while `up` went on: what came after needs a record, too.
                self._store.restore(to_end(cluster, cluster.begun_at))
            yield from ending(self._store, cluster, programs, only_if_due=only_if_due, up_has_ended=True)
        except DrawdownError as error:
            if error.id.startswith(_METASTORE):
                # What costs money ends, whether that can be noted or not.
                yield from self._unnoted(cluster)
            return error
        return None

    def _unnoted(self, cluster: StartedCluster) -> Generator[bool]:
        with suppress(DrawdownError):
            self._programs_of(cluster).down()
        yield False


class PipedStarter:
    """The starter at the other end of standard input, which reads standard output."""

    def __init__(self) -> None:
        self._asked = False
        self._kept = False
        self._gone = False
        signal.signal(signal.SIGTERM, self._on_signal)

    def is_kept(self) -> bool:
        return self._kept

    def must_end(self) -> bool:
        if not self._kept and not self._gone and select.select([0], [], [], 0)[0]:
            said = os.read(0, len(KEEP))
            self._kept, self._gone = said == KEEP, said != KEEP
        return self._asked or self._gone

    def hear(self, said: dict[str, Any]) -> None:
        # It may be gone.
        with suppress(OSError):
            os.write(1, f"{json.dumps(said)}\n".encode())

    def _on_signal(self, *_: object) -> None:
        self._asked = True


def given_up(cluster: StartedCluster) -> MachineError:
    """Return the error for a cluster that is to end before it could be used."""
    return MachineError(
        "cluster.up-failed",
        "another try of the run has begun, or somebody has ended this cluster, while it was started",
        where=f"cluster {cluster.profile} in include/project.yaml",
        do="nothing, if the run was cleared or ended: `down` has been called",
    )


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


def main(arguments: list[str]) -> int:
    """Run the guard of one cluster."""
    # It has its task's whole environment, for the secrets of the project's programs.
    close_to_others()
    if os.fork():
        # It may outlive its starter, whose resource use must not include its own.
        os._exit(0)
    project = load_project(Path(arguments[0]))
    guard = ClusterGuard(
        ReconnectingStore(project), arguments[1], lambda cluster: Programs(project, cluster), PipedStarter()
    )
    for waits in guard.steps():
        if waits:
            time.sleep(_LOOK_EVERY)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
