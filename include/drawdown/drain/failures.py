"""Maps whatever a failed run raised to one DrawdownError."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from drawdown.errors import BusyError, DrawdownError, MachineError, RefusedError, TransformError
from drawdown.plan.deaths import JVM_GONE
from drawdown.recovery.repair.advice import copy_back, torn_state
from drawdown.spark.full_disks import full_disk
from drawdown.spark.gateway import is_cut_off, is_stopping
from drawdown.spark.query_failures import FAILED, from_spark
from drawdown.spark.sentences import root_sentence
from drawdown.spark.session import spark_is_gone
from drawdown.spec import Pipeline
from drawdown.storage.object_errors import OF_A_BUCKET, of_object_storage
from drawdown.workspace import Generation, Workspace

_STATE = ("STATE_STORE", "STREAMING_CHECKPOINT")
# What Spark says when a file of offsets or commits is there that it was about to write.
_OTHER_WRITER = ("MULTI_STREAMING_QUERIES_USING_PATH_CONCURRENTLY", "CONCURRENT_STREAM_LOG_UPDATE")
UNEXPECTED = "drain.unexpected"
STUCK = "drain.stuck"
_JVM_ENDS_WITHIN = 1.0


def of_run(root: SparkSession, workspace: Workspace, pipeline: Pipeline, cause: Exception) -> DrawdownError:
    """Return the DrawdownError for a run that ended with `cause`."""
    if isinstance(cause, TransformError):
        return cause
    said = cause.what if isinstance(cause, DrawdownError) else str(cause)
    if (full := full_disk(workspace.project, pipeline, said)) is not None:
        return full
    if isinstance(cause, DrawdownError):
        return cause
    if isinstance(cause, PySparkException | Py4JJavaError):
        if any(mark in str(cause) for mark in _OTHER_WRITER):
            return _other_writer(workspace, pipeline)
        said_by_spark = from_spark(pipeline, cause)
        if said_by_spark.id in OF_A_BUCKET:
            return said_by_spark
        # A JVM that ends stops Spark first, which fails every query as if it were its own fault.
        if said_by_spark.id == FAILED and is_stopping(root):
            return without_spark(pipeline)
        # A torn checkpoint file is a likelier reason than the one Spark gives.
        generation = Generation.of(workspace, pipeline)
        return torn_state(generation) or _unless_unreadable(generation, cause, said_by_spark)
    if (of_bucket := of_object_storage(str(cause))) is not None:
        return of_bucket
    # Every call to a JVM that has died fails with some connection error.
    gone = is_cut_off(cause) or spark_is_gone(root, within=_JVM_ENDS_WITHIN)
    return without_spark(pipeline) if gone else unexpected(pipeline, cause)


def _unless_unreadable(generation: Generation, cause: Exception, error: DrawdownError) -> DrawdownError:
    """Return `error`, or the error for a checkpoint that Spark cannot read although no torn file was
    found."""
    said = root_sentence(cause)
    # A sentence that names a file of the checkpoint is not about the transform or the data.
    about_it = f"{generation.path}/" in said or any(mark in str(cause) for mark in _STATE)
    if error.id != FAILED or not about_it:
        return error
    # For example: storage keeps no checksums, and a byte has changed.
    return RefusedError(
        "checkpoint.unreadable",
        f"Spark cannot read the checkpoint of {generation.pipeline.name}, although no damaged file was"
        f" found: {said}",
        where=generation.storage.path(generation.path),
        do=copy_back(generation),
    )


def _other_writer(workspace: Workspace, pipeline: Pipeline) -> BusyError:
    generation = Generation.of(workspace, pipeline)
    return BusyError(
        "checkpoint.other-writer",
        f"another driver has written the same batch of {pipeline.name}: this one publishes nothing",
        where=generation.storage.path(generation.path),
        do=f"`drawdown run {pipeline.name}` continues behind that batch",
    )


def without_spark(pipeline: Pipeline) -> MachineError:
    """Return the error for a JVM that was killed or exited during the run."""
    return MachineError(
        JVM_GONE,
        "Spark's JVM ended during the run; it may have run out of memory",
        where=f"pipeline {pipeline.name}",
        do="run again: an interrupted batch is replayed, alone, and a file that ends the JVM is named; if it"
        " happens again, check the machine's log or raise `driver_memory` of the cluster in"
        " include/project.yaml",
    )


def stuck(pipeline: Pipeline, since: str) -> DrawdownError:
    """Return the error for a run that made no progress for `stuck_after`.

    Args:
        since: the last thing that finished.
    """
    return DrawdownError(
        STUCK,
        f"the run made no progress for {pipeline.drain.stuck_after} since {since} and was cancelled",
        where=f"pipeline {pipeline.name}",
        do="look for code that waits forever (a function, a source, a lock in the sink), fix it and run"
        " again: an interrupted batch is replayed; if it is only slow, raise `stuck_after` below"
        " `drain:` in pipeline.yaml",
    )


def unexpected(pipeline: Pipeline, bug: BaseException) -> DrawdownError:
    """Return the error for a failure without an id: its class and its first line."""
    first = (str(bug).strip().splitlines() or [""])[0]
    return DrawdownError(
        UNEXPECTED,
        f"{type(bug).__name__}: {first}",
        where=f"pipeline {pipeline.name}",
        do="run again: an interrupted batch is replayed; report it if it happens again",
    )
