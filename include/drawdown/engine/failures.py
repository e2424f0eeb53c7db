"""From what Spark says when a query dies to one of our errors; no Java stack trace gets through."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import StreamingQueryException
from pyspark.sql import SparkSession

from drawdown.engine.full_disks import full_disk
from drawdown.engine.session import spark_is_gone
from drawdown.errors import DrawdownError, MachineError, RefusedError, SourceError, TransformError
from drawdown.metastore import Metastore
from drawdown.recovery.advice import copy_back, torn_state
from drawdown.recovery.generation import Generation
from drawdown.spec import Pipeline, Project

_CLASS_NAME = re.compile(r"^(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error):\s*")
_GONE = ("FileNotFoundException", "FILE_NOT_EXIST", "PATH_NOT_FOUND")
_PYTHON = "Traceback (most recent call last):"
_BROKER = ("org.apache.kafka.common.errors", "TimeoutException: Timed out waiting for a node")
_LOST = ("KAFKA_DATA_LOSS", "failOnDataLoss")
_CHANGED = ("DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE")
UNEXPECTED = "drain.unexpected"
STUCK = "drain.stuck"
_JVM_ENDS_WITHIN = 1.0


def of_run(
    root: SparkSession, project: Project, pipeline: Pipeline, metastore: Metastore, cause: Exception
) -> DrawdownError:
    """The error of a run that ended with `cause`, whatever that is."""
    if isinstance(cause, TransformError):
        return cause
    said = cause.what if isinstance(cause, DrawdownError) else str(cause)
    if (full := full_disk(project, pipeline, said)) is not None:
        return full
    if isinstance(cause, DrawdownError):
        return cause
    if isinstance(cause, PySparkException | Py4JJavaError):
        # A file that turns out to be torn is the likelier reason than any that Spark gives.
        generation = Generation.of(project, pipeline, metastore)
        return torn_state(generation) or from_spark(pipeline, cause, generation)
    # Whatever was asked of a JVM that is gone, the answer was some error of the connection.
    gone = spark_is_gone(root, within=_JVM_ENDS_WITHIN)
    return without_spark(pipeline) if gone else unexpected(pipeline, cause)


def from_spark(pipeline: Pipeline, cause: Exception, generation: Generation | None = None) -> DrawdownError:
    """The error of a query of `pipeline` that Spark ended with `cause`.

    Args:
        generation: whose checkpoint it went on from, in which nothing was found torn.
    """
    where = f"pipeline {pipeline.name}"
    text = str(cause)
    if _PYTHON in text:
        if (in_reader := _raised_by_reader(pipeline, text)) is not None:
            return in_reader
        # Before the marks below: the user's own code may say anything.
        return TransformError(
            "transform.raised",
            _python_sentence(text),
            where=where,
            do="mend the transform or the data and run again: nothing of this batch was published",
        )
    sentence = root_sentence(cause)
    if any(mark in text for mark in _LOST):
        # Losses that were there before are refused before the query starts (engine/losses.py).
        return SourceError(
            "source.data-lost",
            sentence,
            where=where,
            do="bring the records back, or set `failOnDataLoss: false` in the options of the source",
        )
    if any(mark in text for mark in _BROKER):
        return SourceError("source.broker", sentence, where=where, do="look at the broker, then run again")
    if any(mark in text for mark in _CHANGED):
        return RefusedError(
            "source.rows-changed",
            f"a Delta source has a commit that changed or deleted rows which were read before: {sentence}",
            where=where,
            do="`options: {skipChangeCommits: true}` goes on without what such commits wrote (ignoreDeletes:"
            " only deletions of whole partitions); a new pipeline folder reads the table from its start",
        )
    if any(mark in text for mark in _GONE):
        return SourceError(
            "source.gone",
            f"a file of the batch is gone: {sentence}",
            where=where,
            do="bring the file back and run again: the batch keeps its files until it is committed",
        )
    if generation is not None and ("STATE_STORE" in text or "STREAMING_CHECKPOINT" in text):
        # As where storage keeps no checksums, and a byte has changed.
        return RefusedError(
            "checkpoint.unreadable",
            f"Spark cannot read the checkpoint of {pipeline.name}, though nothing in it is seen to be torn:"
            f" {sentence}",
            where=generation.storage.path(generation.path),
            do=copy_back(generation),
        )
    return TransformError(
        "query.failed",
        sentence,
        where=where,
        do="mend the transform or the data and run again: nothing of this batch was published",
    )


def _raised_by_reader(pipeline: Pipeline, text: str) -> SourceError | None:
    """The error when a trace leads into the file of a Python data source."""
    for name, source in pipeline.sources.items():
        file = str(pipeline.folder / str(source.reader))
        lines = re.findall(rf'File "{re.escape(file)}", line (\d+)', text) if source.reader else []
        if lines:
            return SourceError(
                "source.raised",
                f"the reader of source {name} raised {_python_sentence(text)}",
                where=f"{file}:{lines[-1]}",
                do="mend the reader or what it reads, and run again: nothing was published",
            )
    return None


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
        do="look for code that waits for ever (a function, a source, a lock of the sink), mend it and run"
        " again: a batch that was under way is replayed; if it is only slow, raise `stuck_after` below"
        " `drain:` in pipeline.yaml",
    )


def unexpected(pipeline: Pipeline, bug: Exception) -> DrawdownError:
    """A failure that has no name yet: still one error, with the class and the first line."""
    first = (str(bug).strip().splitlines() or [""])[0]
    return DrawdownError(
        UNEXPECTED,
        f"{type(bug).__name__}: {first}",
        where=f"pipeline {pipeline.name}",
        do="run again: a batch that was under way is replayed; report it if it stays",
    )


def _python_sentence(text: str) -> str:
    """What a function of the user's raised in a Python worker, and the file and line that raised it."""
    trace = text.split(_PYTHON)[-1].split("\n\tat ")[0].split("\n SQLSTATE:")[0].splitlines()
    frames = [line.strip() for line in trace if line.startswith('  File "')]
    said = " ".join(line.strip() for line in trace if line.strip() and not line.startswith("  "))
    return _bounded(f"{said} ({frames[-1]})" if frames else said)


def _bounded(sentence: str) -> str:
    return sentence if len(sentence) <= 600 else sentence[:600] + " …"


def root_sentence(cause: Exception) -> str:
    """The innermost message, on one line, without class names and stack frames."""
    inner: BaseException = cause
    while isinstance(inner, PySparkException) and inner.__cause__ is not None:
        inner = inner.__cause__
    # Py4J puts a line of its own first, and a colon before the Java exception.
    lines = [line.strip().removeprefix(": ") for line in str(inner).splitlines()]
    lines = [line for line in lines if not line.startswith("An error occurred while calling ")]
    if isinstance(inner, StreamingQueryException):
        lines = lines[: next((i for i, x in enumerate(lines) if x.startswith("=== Streaming")), len(lines))]
    causes = [x.removeprefix("Caused by: ") for x in lines if x.startswith("Caused by: ")]
    said = causes[-1] if causes else next((x for x in lines if x), type(inner).__name__)
    return _bounded(_CLASS_NAME.sub("", said).split(" SQLSTATE:")[0])
