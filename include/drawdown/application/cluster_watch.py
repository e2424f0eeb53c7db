"""Watches the cluster that an application runs on, and ends the application's Spark when the cluster is lost.

Spark itself waits for ever: a driver whose master is gone, or whose last executor is, starts no task and
raises nothing (StandaloneSchedulerBackend.disconnected, Spark 4.2.0).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from drawdown.errors import MachineError
from drawdown.processes.ports import answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_STANDALONE = "spark://"
_LOOK_EVERY = 1.0
MASTER_WITHIN = 10.0
"""Seconds without an answer of the master after which the cluster is lost."""

EXECUTORS_WITHIN = 40.0
"""Seconds without any executor after which it is lost; a busy machine may take half of them to start one."""

FIRST_WITHIN = 180.0
"""Seconds within which the first executor has to come, if the cluster was started for the run alone."""


class ClusterWatch:
    """A thread that looks at master and executors until the block ends; only of a standalone cluster.

    Args:
        own: whether the cluster was started for this run: no other application can have its executors.
        lost: called once, with what was found, before Spark is stopped. Then every call to Spark fails.
    """

    def __init__(self, session: SparkSession, lost: Callable[[str], None], *, own: bool) -> None:
        self._session = session
        self._lost = lost
        self._own = own
        self._over = threading.Event()
        context = session.sparkContext
        self._master = str(context.master)
        # With dynamic allocation it is no fault to have no executor.
        self._elastic = context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true"

    def start(self) -> None:
        """Start the thread, if there is a cluster to look at."""
        if self._master.startswith(_STANDALONE):
            threading.Thread(target=self._watch, name="cluster-watch", daemon=True).start()

    def end(self) -> None:
        """Stop looking; Spark may now end."""
        self._over.set()

    def _watch(self) -> None:
        from drawdown.spark.executors import end_context

        master = _Absence(self._master_answers, MASTER_WITHIN)
        executors = _Absence(self._has_executors, EXECUTORS_WITHIN)
        first = _Absence(lambda: executors.seen, FIRST_WITHIN)
        while not self._over.wait(_LOOK_EVERY):
            if master.too_long():
                what = f"the master {self._master} has not answered for {MASTER_WITHIN:.0f} s"
            elif not self._elastic and executors.seen_before_and_too_long():
                what = f"all executors were lost, and none has come back within {EXECUTORS_WITHIN:.0f} s"
            elif self._own and not self._elastic and first.too_long():
                what = f"no executor has come within {FIRST_WITHIN:.0f} s"
            else:
                continue
            if not self._over.is_set():
                try:
                    self._lost(what)
                except Exception as cause:  # noqa: BLE001 - whatever it is, Spark is stopped
                    log.warning("the cluster is lost: %s. Noting it failed: %s", what, cause)
                # Whoever waits for a job waits until then.
                end_context(self._session)
            return

    def _master_answers(self) -> bool:
        # A list of masters, of which one leads, is spark://first:7077,second:7077.
        addresses = self._master.removeprefix(_STANDALONE).split(",")
        parts = [urlsplit(f"//{address}") for address in addresses]
        return any(answers(part.hostname or "", part.port or 0) for part in parts)

    def _has_executors(self) -> bool:
        from drawdown.spark.executors import executors_of

        return executors_of(self._session).cores > 0


class _Absence:
    """How long something has been missing, looked at again and again."""

    def __init__(self, there: Callable[[], bool], limit: float) -> None:
        self._there = there
        self._limit = limit
        self.seen = False
        self._since = time.monotonic()

    def too_long(self) -> bool:
        with suppress(Exception):  # what cannot be asked is not there
            if self._there():
                self.seen, self._since = True, time.monotonic()
        return time.monotonic() - self._since > self._limit

    def seen_before_and_too_long(self) -> bool:
        return self.too_long() and self.seen


def cluster_lost(cluster: str, what: str) -> MachineError:
    """Return the error of the runs whose cluster was lost."""
    return MachineError(
        "cluster.lost",
        f"the run was ended because its cluster was lost: {what}",
        where=f"cluster {cluster} in include/project.yaml",
        do="run again: a new cluster is started, and an interrupted batch is replayed; if it happens again,"
        " read the cluster's log (.drawdown/logs/clusters) and check its machines' memory",
    )
