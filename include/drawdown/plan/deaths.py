"""How often in a row a pipeline's runs died with Spark's JVM, by their records.

A JVM that ends takes every run with it that is under way, and it is unknown which of them did it. So each is
suspected: the next application runs it alone, behind all others (application/suspects.py), and looks at its
files thoroughly. A run that ends in another way clears it.
"""

from __future__ import annotations

from collections.abc import Iterator

from drawdown.errors import MachineError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run
from drawdown.values.commands import set_aside_file

JVM_GONE = "spark.gone"
ENDS_SPARK = "source.ends-spark"
DEAD = (JVM_GONE, ENDS_SPARK)
"""The errors of runs whose JVM is gone."""
_OF_MEMORY = ("OutOfMemoryError", "Java heap space", "GC overhead limit", "StackOverflowError")
_LOOKED_AT = 10
_KILLED = 3


def lacks_memory(said: str) -> bool:
    """Whether a sentence of Spark's says that the JVM had too little memory."""
    return any(mark in said for mark in _OF_MEMORY)


def dead_runs(metastore: Metastore, pipeline: str) -> list[Run]:
    """Return the newest runs of a pipeline that died, newest first, up to the first that did not.

    A run that is under way is passed over.
    """
    found = []
    for run in _ended(metastore, pipeline):
        if not _died(run):
            break
        found.append(run)
    return found


def is_dead(metastore: Metastore, run: Run) -> bool:
    """Whether a run died with its JVM, and is not under way."""
    holder = metastore.holder_of(run.pipeline)
    return _died(run) and (holder is None or holder.run_id != run.run_id)


def deaths(metastore: Metastore, pipeline: str) -> int:
    """Return how many runs of a pipeline died in a row, until now."""
    return len(dead_runs(metastore, pipeline))


def looks_thoroughly(metastore: Metastore, pipeline: str) -> bool:
    """Whether the next run looks for what is beyond the limits in ordinary files, too: after a death, and
    after a file that Spark could not read."""
    newest = next(_ended(metastore, pipeline), None)
    return newest is not None and (
        _died(newest) or (newest.error or {}).get("id") == "source.unreadable-file"
    )


def reads_alone(metastore: Metastore, pipeline: str) -> bool:
    """Whether the next run reads each of its files alone first.

    A run whose process was killed may have been so by a person: only the third in a row counts.
    """
    dead = dead_runs(metastore, pipeline)
    return bool(dead) and (dead[0].error is not None or len(dead) >= _KILLED)


def _ended(metastore: Metastore, pipeline: str) -> Iterator[Run]:
    holder = metastore.holder_of(pipeline)
    for run in metastore.recent_runs(pipeline, _LOOKED_AT):
        if holder is None or run.run_id != holder.run_id:
            yield run


def _died(run: Run) -> bool:
    if run.error is None:
        # One that is still `running`, without a lease, was killed before it could say anything.
        return run.state in ("crashed", "running")
    about = str(run.error.get("id"))
    return about in DEAD or lacks_memory(str(run.error.get("what")))


def ends_spark(pipeline: str, source: str, files: str, first: str) -> MachineError:
    """Return the error for files that ended Spark's JVM when nothing else was read.

    Args:
        files: in words, with their sizes.
        first: the path of one of them.
    """
    return MachineError(
        ENDS_SPARK,
        f"{files} of source {source} ended Spark's JVM when read alone",
        where=f"pipeline {pipeline}",
        do=f"{set_aside_file(pipeline, first)} sets it aside, also out of a batch that is planned;"
        " or raise `driver_memory` of the cluster in include/project.yaml, and run again",
    )
