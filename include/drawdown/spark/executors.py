"""The executors that Spark was given, if it has any besides its driver."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Executors:
    """``memory``: bytes of heap that they requested."""

    cores: int = 0
    memory: int = 0


def executors_of(session: SparkSession) -> Executors:
    """Return the executors that are alive; none when the driver is the executor, or is gone."""
    return _sum(_listed(session, alive=True), session)


def most_executors_of(session: SparkSession, since: float) -> Executors:
    """Return the most executors that there were at one time, dead ones included: those that were lost with
    their cluster, or were given back before the end, were paid for too.

    Args:
        since: seconds since 1970; what went before is not counted.
    """
    begin = since * 1_000
    listed = [each for each in _listed(session, alive=False) if each.removed > begin]
    # The number can only have grown when one was added.
    return max(
        (
            _sum([each for each in listed if each.added <= at < each.removed], session)
            for at in {max(each.added, begin) for each in listed}
        ),
        key=lambda found: found.cores,
        default=Executors(),
    )


class _Executor(NamedTuple):
    """Times in milliseconds since 1970."""

    cores: int
    added: float
    removed: float


def _listed(session: SparkSession, *, alive: bool) -> list[_Executor]:
    if is_local(session):
        return []
    try:
        listed: Any = session.sparkContext._jsc.sc().statusStore().executorList(alive)
        return [
            _Executor(
                each.totalCores(),
                each.addTime().getTime(),
                each.removeTime().get().getTime() if each.removeTime().isDefined() else math.inf,
            )
            for each in map(listed.apply, range(listed.size()))
            if each.id() != "driver"
        ]
    except (Py4JError, OSError):
        return []


def _sum(found: Sequence[_Executor], session: SparkSession) -> Executors:
    if not found:
        return Executors()
    try:
        memory = session.sparkContext._jsc.sc().conf().getSizeAsBytes("spark.executor.memory", "1g")
    except (Py4JError, OSError):
        return Executors()
    return Executors(sum(each.cores for each in found), len(found) * int(memory))


def end_context(session: SparkSession) -> None:
    """Stop Spark's context in the JVM, from any thread: whoever waits for a job gets an error."""
    with suppress(Py4JError, OSError):
        session.sparkContext._jsc.sc().stop()


def is_local(session: SparkSession) -> bool:
    """Whether tasks run in the driver's own process."""
    return str(session.sparkContext.master).startswith("local")
