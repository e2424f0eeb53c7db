"""How a run that failed ends: with one of our errors, whatever was raised."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from drawdown.errors import DrawdownError, MachineError, RefusedError, TransformError
from drawdown.recovery.advice import copy_back, torn_state
from drawdown.spark.full_disks import full_disk
from drawdown.spark.query_failures import FAILED, from_spark
from drawdown.spark.sentences import root_sentence
from drawdown.spark.session import spark_is_gone
from drawdown.spec import Pipeline
from drawdown.workspace import Generation, Workspace

_STATE = ("STATE_STORE", "STREAMING_CHECKPOINT")
UNEXPECTED = "drain.unexpected"
STUCK = "drain.stuck"
_JVM_ENDS_WITHIN = 1.0


def of_run(root: SparkSession, workspace: Workspace, pipeline: Pipeline, cause: Exception) -> DrawdownError:
    """The error of a run that ended with `cause`, whatever that is."""
    if isinstance(cause, TransformError):
        return cause
    said = cause.what if isinstance(cause, DrawdownError) else str(cause)
    if (full := full_disk(workspace.project, pipeline, said)) is not None:
        return full
    if isinstance(cause, DrawdownError):
        return cause
    if isinstance(cause, PySparkException | Py4JJavaError):
        # A file that turns out to be torn is the likelier reason than any that Spark gives.
        generation = Generation.of(workspace, pipeline)
        return torn_state(generation) or _unless_unreadable(generation, cause, from_spark(pipeline, cause))
    # Whatever was asked of a JVM that is gone, the answer was some error of the connection.
    gone = spark_is_gone(root, within=_JVM_ENDS_WITHIN)
    return without_spark(pipeline) if gone else unexpected(pipeline, cause)


def _unless_unreadable(generation: Generation, cause: Exception, error: DrawdownError) -> DrawdownError:
    """The error, or that of a checkpoint which Spark cannot read although nothing in it was found torn."""
    if error.id != FAILED or not any(mark in str(cause) for mark in _STATE):
        return error
    # As where storage keeps no checksums, and a byte has changed.
    return RefusedError(
        "checkpoint.unreadable",
        f"Spark cannot read the checkpoint of {generation.pipeline.name}, though nothing in it is seen to be"
        f" torn: {root_sentence(cause)}",
        where=generation.storage.path(generation.path),
        do=copy_back(generation),
    )


def without_spark(pipeline: Pipeline) -> MachineError:
    """The JVM was killed under the run, or has ended itself."""
    return MachineError(
        "spark.gone",
        "Spark's JVM has ended in the middle of the run; memory may have run out",
        where=f"pipeline {pipeline.name}",
        do="run again: a batch that was under way is replayed; if it stays, look at the machine's log"
        " or raise `driver_memory` of the cluster in include/project.yaml",
    )


def stuck(pipeline: Pipeline, since: str) -> DrawdownError:
    """Nothing of a run has ended for as long as its pipeline allows.

    Args:
        since: what has ended last.
    """
    return DrawdownError(
        STUCK,
        f"nothing of the run has ended for {pipeline.drain.stuck_after} since {since}: it was given up",
        where=f"pipeline {pipeline.name}",
        do="look for code that waits forever (a function, a source, a lock of the sink), fix it and run"
        " again: a batch that was under way is replayed; if it is only slow, raise `stuck_after` below"
        " `drain:` in pipeline.yaml",
    )


def unexpected(pipeline: Pipeline, bug: BaseException) -> DrawdownError:
    """A failure that has no name yet: still one error, with the class and the first line."""
    first = (str(bug).strip().splitlines() or [""])[0]
    return DrawdownError(
        UNEXPECTED,
        f"{type(bug).__name__}: {first}",
        where=f"pipeline {pipeline.name}",
        do="run again: a batch that was under way is replayed; report it if it stays",
    )
