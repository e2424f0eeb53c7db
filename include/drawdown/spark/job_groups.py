"""Spark jobs of one run among those of its application: a fair pool, job groups, and their end.

Job tags are not used, because a query would inherit them: a listener in Python never gets the start event of
a query with a tag (QueryStartedEvent.fromJObject, PySpark 4.2.0, calls `toString` on text).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

_POOL = "spark.scheduler.pool"
_STOPS_WITHIN = "5s"


def own_jobs(root: SparkSession, pool: str, run_id: str) -> None:
    """Make all later Spark jobs of this thread belong to a run: their job group is the run's id.

    With `spark.scheduler.mode` FAIR the pools share the cores evenly, whatever waits in each. A Python thread
    has its own thread in the JVM. A query that it starts inherits the pool, but has its own job group: the
    query's run id (StreamExecution.runStream).
    """
    context = root.sparkContext
    context.setLocalProperty(_POOL, pool)
    context.setJobGroup(run_id, f"drawdown {pool}", interruptOnCancel=True)


def cancel_jobs(root: SparkSession, groups: Iterable[str]) -> None:
    """End the jobs of these groups, from any thread; if the JVM has ended, they have too.

    Spark kills a Python worker that does not end, after `spark.python.task.killTimeout` (2 s).
    """
    with suppress(Py4JError):
        for group in groups:
            root.sparkContext.cancelJobGroup(group)


def end_stuck_query(session: SparkSession, running: StreamingQuery) -> None:
    """Stop a query in the middle of its batch, and wait for its end, which the user's code may delay forever.

    Cancel its jobs before (`cancel_jobs`). Threads that wait in the JVM are interrupted.
    """
    session.conf.set("spark.sql.streaming.stopTimeout", _STOPS_WITHIN)
    with suppress(PySparkException, Py4JJavaError):
        running.stop()
    with suppress(PySparkException):
        running.awaitTermination()


def job_signs(root: SparkSession, groups: Iterable[str]) -> object:
    """Return a value that changes whenever a job of a run begins or ends, or a task of an active job does.

    A run can have several jobs at a time: adaptive execution and threads of the user's code begin another
    before the first has ended. Those threads have no job group, so jobs without a group count for every run:
    it is better to notice a stuck run late than to cancel one that works.
    """
    context: Any = root.sparkContext
    try:
        status, store = context.statusTracker(), context._jsc.sc().statusStore()
        jobs = {job for group in (*groups, None) for job in status.getJobIdsForGroup(group)}
        # Spark drops ended jobs in time (spark.ui.retainedJobs), which is not progress.
        going_on = sorted(jobs.intersection(status.getActiveJobsIds()))
        tasks = tuple((job, store.job(job).numCompletedTasks()) for job in going_on)
    except Py4JError:
        return None
    return max(jobs, default=-1), tasks
