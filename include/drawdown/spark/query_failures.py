"""Turn Spark's failure of a query into one of our errors, without a Java stack trace."""

from __future__ import annotations

import re
from urllib.parse import unquote

from drawdown.checkpoint import plain_path
from drawdown.errors import DrawdownError, RefusedError, SourceError, TransformError
from drawdown.spark.fit_values import UNFIT_TEXT, UNFIT_VALUE
from drawdown.spark.sentences import PYTHON, python_sentence, root_sentence, whole_text
from drawdown.spark.sql_bounds import REMEDY, SIZE, is_too_large
from drawdown.spec import Pipeline
from drawdown.storage.object_errors import of_object_storage
from drawdown.values.commands import set_aside_file
from drawdown.values.kafka_names import OTHER_TOPIC, RESERVED_ROWS

FAILED = "query.failed"
_GONE = ("FileNotFoundException", "FILE_NOT_EXIST", "PATH_NOT_FOUND")
_BROKER = ("org.apache.kafka.common.errors", "TimeoutException: Timed out waiting for a node")
_LOST = ("KAFKA_DATA_LOSS", "failOnDataLoss")
# FAILED_READ_FILE and CANNOT_READ_FILE_FOOTER of Spark 4.2 name the file as a URI.
_UNREADABLE = re.compile(
    r"\[(?:FAILED_READ_FILE|CANNOT_READ_FILE_FOOTER)[^\]]*\][^\n]*?\b([a-z][a-z0-9]*:/[^\s]+?)\.?(?:\s|$)"
)
_CHANGED = ("DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE")


def from_spark(pipeline: Pipeline, cause: Exception) -> DrawdownError:
    """Return the error for a query that Spark ended with `cause`; ``query.failed`` if no cause is known."""
    where = f"pipeline {pipeline.name}"
    text = str(cause)
    if PYTHON in text:
        if (in_reader := _raised_by_reader(pipeline, text)) is not None:
            return in_reader
        # Checked first, because the message of the user's own code may contain any of the texts below.
        return TransformError(
            "transform.raised",
            python_sentence(text),
            where=where,
            do="fix the transform or the data and run again: no rows of this batch were published",
        )
    if (of_bucket := of_object_storage(whole_text(cause))) is not None:
        return of_bucket
    sentence = root_sentence(cause)
    if "USER_RAISED_EXCEPTION" in text and is_too_large(sentence):
        sentence = sentence.removeprefix("[USER_RAISED_EXCEPTION] ")
        return TransformError(SIZE, sentence, where=where, do=REMEDY)
    if f"{UNFIT_TEXT}: " in text:
        return TransformError(
            UNFIT_TEXT,
            sentence.partition(f"{UNFIT_TEXT}: ")[2] or "a column holds text that the sink cannot keep",
            where=where,
            do="decode it in the transform (decode(bytes, 'ISO-8859-1'), make_valid_utf8(text), replace(text,"
            " char(0), '')), or make the column BINARY: no rows of this batch were published",
        )
    if f"{UNFIT_VALUE}: " in text:
        return TransformError(
            UNFIT_VALUE,
            sentence.partition(f"{UNFIT_VALUE}: ")[2] or "a column holds a value that the sink cannot keep",
            where=where,
            do="give it another value in the transform (nullif, coalesce, greatest), or set its row aside by"
            " a rule in quality.yaml: no rows of this batch were published",
        )
    if "USER_RAISED_EXCEPTION" in text and f"{RESERVED_ROWS}: " in text:
        said = sentence.partition(f"{RESERVED_ROWS}: ")[2] or "rows name a reserved topic"
        return TransformError(RESERVED_ROWS, said, where=where, do=OTHER_TOPIC)
    if any(mark in text for mark in _LOST):
        # Losses from before the run are refused before the query starts (sources/kafka/spark_losses.py).
        return SourceError(
            "source.data-lost",
            sentence,
            where=where,
            do="bring the records back, or set `failOnDataLoss: false` in the options of the source",
        )
    if any(mark in text for mark in _BROKER):
        return SourceError("source.broker", sentence, where=where, do="check the broker, then run again")
    if any(mark in text for mark in _CHANGED):
        return RefusedError(
            "source.rows-changed",
            f"a Delta source has a commit that changed or deleted rows which were read before: {sentence}",
            where=where,
            do="`options: {skipChangeCommits: true}` skips these commits (ignoreDeletes: only deletions of"
            " whole partitions); a new pipeline folder reads the table from its start",
        )
    if (file := _UNREADABLE.search(text)) is not None and not any(mark in text for mark in _GONE):
        return _unreadable(pipeline.name, plain_path(unquote(file[1])), sentence)
    if any(mark in text for mark in _GONE):
        return SourceError(
            "source.gone",
            f"a file of the batch is gone: {sentence}",
            where=where,
            do="restore the file and run again: the batch needs its files until it is committed; or, if it is"
            f" lost, {set_aside_file(pipeline.name, _lost_file(text))} takes it out of the batch",
        )
    return TransformError(
        FAILED,
        sentence,
        where=where,
        do="fix the transform or the data and run again: no rows of this batch were published",
    )


def _lost_file(text: str) -> str:
    """Return the path of the file that a failure names; Spark leaves some unnamed."""
    found = _UNREADABLE.search(text)
    return "PATH" if found is None else plain_path(unquote(found[1]))


def _unreadable(pipeline: str, file: str, said: str) -> SourceError:
    """Return the error for a file that is truncated, or is not what its name says."""
    return SourceError(
        "source.unreadable-file",
        f"{file} cannot be read: {said}",
        where=f"pipeline {pipeline}",
        do="replace the file with an intact one and run again: the batch keeps its files until it is"
        f" committed; or {set_aside_file(pipeline, file)} takes it out of the batch; or"
        " `options: {ignoreCorruptFiles: true}` of the source reads what can be read, and does not count what"
        " is lost",
    )


def _raised_by_reader(pipeline: Pipeline, text: str) -> SourceError | None:
    """Return an error when a trace leads into the file of a Python data source; else None."""
    for name, source in pipeline.sources.items():
        file = str(pipeline.folder / str(source.reader))
        lines = re.findall(rf'File "{re.escape(file)}", line (\d+)', text) if source.reader else []
        if lines:
            return SourceError(
                "source.raised",
                f"the reader of source {name} raised {python_sentence(text)}",
                where=f"{file}:{lines[-1]}",
                do="fix the reader or its input, and run again: nothing was published",
            )
    return None
