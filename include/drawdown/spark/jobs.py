"""Spark jobs of one run among those of its application: a fair pool, job groups, and their end.

Not by job tags, which a query would inherit: a listener in Python never hears of the start of a query that
has one (QueryStartedEvent.fromJObject, PySpark 4.2.0, asks text for its `toString`).
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
    """What this thread asks of Spark from now on belongs to a run, as a job group of the run's id.

    With `spark.scheduler.mode` FAIR the pools share the cores evenly, whatever each has waiting. A thread of
    Python has a thread of its own in the JVM. A query that it starts inherits the pool; its job group is its
    own (StreamExecution.runStream): its run id.
    """
    context = root.sparkContext
    context.setLocalProperty(_POOL, pool)
    context.setJobGroup(run_id, f"drawdown {pool}", interruptOnCancel=True)


def cancel_jobs(root: SparkSession, groups: Iterable[str]) -> None:
    """End the jobs of some groups, from any thread; a Python worker that does not end is killed by Spark,
    after `spark.python.task.killTimeout` (2 s). Where the JVM has ended, so have they."""
    with suppress(Py4JError):
        for group in groups:
            root.sparkContext.cancelJobGroup(group)


def end_stuck_query(session: SparkSession, running: StreamingQuery) -> None:
    """Returns when a query has ended, its batch in the middle; never while code of the user's holds it.

    Its jobs are cancelled before (`cancel_jobs`). What waits in the JVM is interrupted.
    """
    session.conf.set("spark.sql.streaming.stopTimeout", _STOPS_WITHIN)
    with suppress(PySparkException, Py4JJavaError):
        running.stop()
    with suppress(PySparkException):
        running.awaitTermination()


def job_signs(root: SparkSession, groups: Iterable[str]) -> object:
    """Something that is another whenever a job of a run has begun or ended, or a task of any going on.

    A run has several jobs at a time: adaptive execution and threads of the user's code begin a second one
    before the first has ended. Such threads have no job group, so jobs of none count for every run: it is
    better to find late that one hangs than to cancel one that works.
    """
    context: Any = root.sparkContext
    try:
        status, store = context.statusTracker(), context._jsc.sc().statusStore()
        jobs = {job for group in (*groups, None) for job in status.getJobIdsForGroup(group)}
        # Jobs that have ended are forgotten in time (spark.ui.retainedJobs): to be forgotten is no sign.
        going_on = sorted(jobs.intersection(status.getActiveJobsIds()))
        tasks = tuple((job, store.job(job).numCompletedTasks()) for job in going_on)
    except Py4JError:
        return None
    return max(jobs, default=-1), tasks
