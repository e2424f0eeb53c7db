"""The executors that Spark was given, if it has any besides its driver."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Executors:
    """``memory``: bytes of heap that they requested."""

    cores: int = 0
    memory: int = 0


def executors_of(session: SparkSession) -> Executors:
    """Return the executors that are alive; none when the driver is the executor, or is gone."""
    if is_local(session):
        return Executors()
    context = session.sparkContext._jsc.sc()
    try:
        listed = context.statusStore().executorList(True)
        found = [listed.apply(place) for place in range(listed.size())]
        cores = [each.totalCores() for each in found if each.id() != "driver"]
        memory = context.conf().getSizeAsBytes("spark.executor.memory", "1g")
    except (Py4JError, OSError):
        return Executors()
    return Executors(sum(cores), len(cores) * int(memory))


def end_context(session: SparkSession) -> None:
    """Stop Spark's context in the JVM, from any thread: whoever waits for a job gets an error."""
    with suppress(Py4JError, OSError):
        session.sparkContext._jsc.sc().stop()


def is_local(session: SparkSession) -> bool:
    """Whether tasks run in the driver's own process."""
    return str(session.sparkContext.master).startswith("local")
