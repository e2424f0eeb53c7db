"""From what Spark says when a query dies to one of our errors; no Java stack trace gets through."""

from __future__ import annotations

import re

from drawdown.errors import DrawdownError, RefusedError, SourceError, TransformError
from drawdown.spark.sentences import PYTHON, python_sentence, root_sentence
from drawdown.spark.texts import UNFIT
from drawdown.spec import Pipeline

FAILED = "query.failed"
_GONE = ("FileNotFoundException", "FILE_NOT_EXIST", "PATH_NOT_FOUND")
_BROKER = ("org.apache.kafka.common.errors", "TimeoutException: Timed out waiting for a node")
_LOST = ("KAFKA_DATA_LOSS", "failOnDataLoss")
_CHANGED = ("DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE")


def from_spark(pipeline: Pipeline, cause: Exception) -> DrawdownError:
    """The error of a query that Spark ended with `cause`; ``query.failed`` if nothing more is known."""
    where = f"pipeline {pipeline.name}"
    text = str(cause)
    if PYTHON in text:
        if (in_reader := _raised_by_reader(pipeline, text)) is not None:
            return in_reader
        # Before the marks below: the user's own code may say anything.
        return TransformError(
            "transform.raised",
            python_sentence(text),
            where=where,
            do="fix the transform or the data and run again: nothing of this batch was published",
        )
    sentence = root_sentence(cause)
    if f"{UNFIT}: " in text:
        return TransformError(
            UNFIT,
            sentence.partition(f"{UNFIT}: ")[2] or "a column holds text that is no UTF-8",
            where=where,
            do="decode it in the transform (decode(bytes, 'ISO-8859-1'), make_valid_utf8(text)), or make the"
            " column BINARY: nothing of this batch was published",
        )
    if any(mark in text for mark in _LOST):
        # Losses that were there before are refused before the query starts (sources/kafka/spark_losses.py).
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
    return TransformError(
        FAILED,
        sentence,
        where=where,
        do="fix the transform or the data and run again: nothing of this batch was published",
    )


def _raised_by_reader(pipeline: Pipeline, text: str) -> SourceError | None:
    """The error when a trace leads into the file of a Python data source."""
    for name, source in pipeline.sources.items():
        file = str(pipeline.folder / str(source.reader))
        lines = re.findall(rf'File "{re.escape(file)}", line (\d+)', text) if source.reader else []
        if lines:
            return SourceError(
                "source.raised",
                f"the reader of source {name} raised {python_sentence(text)}",
                where=f"{file}:{lines[-1]}",
                do="fix the reader or what it reads, and run again: nothing was published",
            )
    return None
