"""Processor time of Spark's tasks by run, because an application may have several active runs.

Spark reports it once per stage, in the driver's JVM. A listener in Python would be called for every event of
every task, and Spark's own store only keeps the last 1,000 stages. So this listener is a few lines of Java,
compiled in the JVM by the compiler that Spark uses for its queries (org.codehaus.janino).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_RUN = "drawdown.run"
"""Local property of a thread whose jobs belong to a run; a query that the thread starts inherits it. It is
not a job tag: with a tag, a listener in Python gets no start events (jobs.py)."""

_LISTENER = "org.apache.spark.scheduler.SparkListener"
_JAVA = f"""
private final java.util.Map runs = new java.util.concurrent.ConcurrentHashMap();
private final java.util.Map nanos = new java.util.concurrent.ConcurrentHashMap();

public void onStageSubmitted(org.apache.spark.scheduler.SparkListenerStageSubmitted event) {{
    String run = event.properties() == null ? null : event.properties().getProperty("{_RUN}");
    runs.put(key(event.stageInfo()), run == null ? "" : run);
}}

public void onStageCompleted(org.apache.spark.scheduler.SparkListenerStageCompleted event) {{
    String run = (String) runs.remove(key(event.stageInfo()));
    if (run == null || event.stageInfo().taskMetrics() == null) return;
    Long before = (Long) nanos.get(run);
    long spent = event.stageInfo().taskMetrics().executorCpuTime();
    nanos.put(run, Long.valueOf(spent + (before == null ? 0L : before.longValue())));
}}

private static String key(org.apache.spark.scheduler.StageInfo stage) {{
    return stage.stageId() + "." + stage.attemptNumber();
}}

public String toString() {{
    return nanos.toString();
}}
"""
_SECONDS = 10


class TaskTimes:
    """Records every stage from now on, until it is read."""

    def __init__(self, session: SparkSession) -> None:
        jvm: Any = session.sparkContext._jvm
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        compiler = jvm.org.codehaus.janino.ClassBodyEvaluator()
        compiler.setParentClassLoader(loader)
        compiler.setExtendedClass(loader.loadClass(_LISTENER))
        compiler.cook(_JAVA)
        self._listener = compiler.getClazz().newInstance()
        # Py4J caches methods by the name of their class, and all these classes have the same name: Py4J would
        # call the methods of the first one made in this JVM (py4j.reflection.ReflectionEngine).
        self._said = jvm.java.util.Objects.toString
        self._context: Any = session.sparkContext._jsc.sc()
        self._context.addSparkListener(self._listener)

    def read(self) -> dict[str, int]:
        """Stop recording and return microseconds by run id, "" for tasks without a run.

        {} when the JVM is gone and, with a warning, when the listener fails.
        """
        try:
            self._context.listenerBus().waitUntilEmpty(_SECONDS * 1_000)
            self._context.removeSparkListener(self._listener)
            said = str(self._said(self._listener))
        except (Py4JNetworkError, OSError):
            return {}
        except Py4JError as cause:
            _warn(cause)
            return {}
        pairs = (part.partition("=") for part in said.strip("{}").split(", ") if part)
        return {run: int(nanos) // 1_000 for run, _, nanos in pairs}


def task_times(session: SparkSession) -> TaskTimes | None:
    """Start recording; None, with a warning, if this Spark does not accept the listener."""
    try:
        return TaskTimes(session)
    except (Py4JError, TypeError) as cause:
        _warn(cause)
        return None


def _warn(cause: Exception) -> None:
    log.warning("the time of tasks is not counted for each pipeline: %s", str(cause).splitlines()[0])


@contextmanager
def charged_to(session: SparkSession, run_id: str) -> Iterator[None]:
    """Charge Spark's work in the block to this run."""
    session.sparkContext.setLocalProperty(_RUN, run_id)
    try:
        yield
    finally:
        # The JVM may be gone; the run's own error must not be hidden.
        with suppress(Py4JError, OSError):
            session.sparkContext.setLocalProperty(_RUN, None)  # type: ignore[arg-type]
