"""Measures one Spark application and records in the metastore what it requested and used.

The application is the process that spark-submit started, or the command's own, and all processes below it:
the driver's JVM, Python, its workers. With an existing session that stays open, only the use from here to the
end counts.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore
from drawdown.metastore.operations.applications import Measured, Requested
from drawdown.processes.usage import TreeUse, use_of
from drawdown.spec.clusters.price import GB, Price
from drawdown.storage.requests import sent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from drawdown.spark.task_times import TaskTimes

log = logging.getLogger(__name__)

_BY_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"
"""Set in the environment of a driver that spark-submit's JVM started (PythonRunner)."""

_NOTHING = TreeUse(0, 0, 0)


class Profile(Protocol):
    """The parts of a cluster profile that its cost is computed from."""

    @property
    def cores(self) -> int:
        """Of the driver's process."""

    @property
    def memory_bytes(self) -> int:
        """Of the driver's process."""

    @property
    def price(self) -> Price | None: ...


class Meter:
    """Measures from its creation on.

    Args:
        cluster: name of the profile.
        going_on: whether Spark's session already existed.
    """

    def __init__(self, metastore: Metastore, cluster: str, profile: Profile, *, going_on: bool) -> None:
        self._metastore = metastore
        self._cluster = cluster
        self._profile = profile
        self._going_on = going_on
        self._root = os.getppid() if _BY_SPARK_SUBMIT in os.environ else os.getpid()
        self._sent = sent()
        self._sent_by_spark: Mapping[str, int] = {}
        self._before = (use_of(self._root) if going_on else None) or _NOTHING
        self._id = ""
        self._noting = threading.Lock()
        self._reading = threading.Lock()
        self._start_us: int | None = None
        self._tasks: TaskTimes | None = None
        self._seen: Measured | None = None
        self._since = time.time()

    def application(self) -> str:
        """Return the application's id. It is recorded with the first run: an application without runs leaves
        no record."""
        with self._noting:
            if not self._id:
                application_id = uuid.uuid4().hex
                asked, price = self._profile, self._profile.price
                requested = Requested(
                    self._cluster,
                    asked.cores,
                    asked.memory_bytes,
                    price.recorded if price else None,
                )
                age = timedelta(microseconds=self._used().age_us)
                self._metastore.applications.begin(application_id, requested, age)
                self._id = application_id
        return self._id

    def spark_is_up(self, session: SparkSession, *, several: bool) -> None:
        """Start counting task time per run, if `several` runs may share one session.

        Only the first call counts.
        """
        from drawdown.spark.bucket_requests import sent_by_spark
        from drawdown.spark.executors import is_local
        from drawdown.spark.task_times import task_times

        if self._start_us is not None:
            return
        self._start_us = self._used().age_us
        self._sent_by_spark = sent_by_spark(session)
        if several or not is_local(session):
            self._tasks = task_times(session)

    def spark_ends(self, session: SparkSession) -> None:
        """Read what only Spark knows. Only the first call counts: after a loss there is less to read."""
        with self._reading:
            if self._seen is None:
                self._seen = self._read(session)

    def _read(self, session: SparkSession) -> Measured:
        from drawdown.spark.bucket_requests import sent_by_spark
        from drawdown.spark.executors import is_local, most_executors_of

        executors = most_executors_of(session, self._since)
        tasks = self._tasks.read() if self._tasks else {}
        cores, memory = self._billed(str(session.sparkContext.master)) or (executors.cores, executors.memory)
        return Measured(
            executor_cores=cores,
            executor_memory=memory,
            executor_us=0 if is_local(session) else sum(tasks.values()),
            task_us=tasks,
            requests=_since(self._sent_by_spark, sent_by_spark(session)),
        )

    def _billed(self, master: str) -> tuple[int, int] | None:
        """Return cores and bytes that the cluster's own `up` said to bill; None when it said nothing."""
        if self._going_on or master.startswith("local"):
            return None
        try:
            found = self._metastore.clusters.standing()
        except DrawdownError:
            return None
        answers = [each.answer for each in found if each.answer and each.answer["master"] == master]
        bill = answers[-1].get("bill") if answers else None
        return None if bill is None else (int(bill["cores"]), int(bill["memory_gib"] * GB))

    def charged(self, session: SparkSession, run_id: str) -> AbstractContextManager[None]:
        """Charge Spark's work inside the block to this run."""
        if self._tasks is None:
            return nullcontext()
        from drawdown.spark.task_times import charged_to

        return charged_to(session, run_id)

    def end(self) -> None:
        """Record what was used. If that fails, the use is unknown and no run fails."""
        if not self._id:
            return
        used, seen = self._used(), self._seen or Measured()
        measured = replace(
            seen,
            start_us=self._start_us,
            cpu_us=used.cpu_us + seen.executor_us,
            peak_bytes=used.peak_bytes,
            requests=dict(Counter(seen.requests) + Counter(_since(self._sent, sent()))),
        )
        try:
            self._metastore.applications.end(self._id, measured)
        except DrawdownError as error:
            log.warning("the usage of this application was not recorded: %s", error.what)

    def _used(self) -> TreeUse:
        now = use_of(self._root)
        if now is None:  # spark-submit's JVM has died and ends this process, too
            return _NOTHING
        return TreeUse(
            max(0, now.age_us - self._before.age_us),
            max(0, now.cpu_us - self._before.cpu_us),
            now.peak_bytes,
        )


def _since(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    return {kind: times - before.get(kind, 0) for kind, times in now.items()}
