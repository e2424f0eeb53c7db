"""Errors for actions on a stream inside a transform (count(), show(), collect() ...): what to write instead.

A stream has no rows until a query runs it. Spark refuses all of them with the same sentence; this error names
the action that was called.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

import pyspark
from pyspark.errors import PySparkException

from drawdown.errors import TransformError
from drawdown.spec import Pipeline

# Spark 4.2: UnsupportedOperationChecker.checkForBatch and Dataset.write on a streaming frame.
_CONDITIONS = ("_LEGACY_ERROR_TEMP_3102", "CALL_ON_STREAMING_DATASET_UNSUPPORTED")

_RETURN_IT = "return the frame: its rows go to the sink; `drawdown test` compares them with expected ones"
_WRITES = "return the frame: `sink:` decides where its rows go"
_NOT_KEPT = "remove it: each batch is computed from its own rows, and state is kept by stateful operators"
_BY_ROWS = "use functions of DataFrames, or mapInPandas"
_INSTEAD: Mapping[str, str] = {
    "count": "use groupBy().count(), the running count of the whole stream, in update or complete mode",
    "show": "use a sink of `format: console`, or `drawdown test`",
    "foreach": "use a sink of `format: foreach`",
    "foreachPartition": "use a sink of `format: foreach`",
    **dict.fromkeys(("write", "writeTo", "save", "saveAsTable", "insertInto", "jdbc"), _WRITES),
    **dict.fromkeys(("parquet", "orc", "json", "csv", "text", "xml"), _WRITES),
    **dict.fromkeys(("cache", "persist", "checkpoint", "localCheckpoint"), _NOT_KEPT),
    **dict.fromkeys(("rdd", "toJSON"), _BY_ROWS),
}


def action_refused(pipeline: Pipeline, where: str, cause: PySparkException) -> TransformError | None:
    """Return the error ``transform.action`` when Spark refused an action on a stream; else None.

    Args:
        where: file and line of the transform that called it.
    """
    if cause.getCondition() not in _CONDITIONS:
        return None
    name = _called(cause.__traceback__, str(pipeline.folder / pipeline.transform))
    return TransformError(
        "transform.action",
        f"the transform of {pipeline.name} calls {name}() on a stream: it has no rows until its query runs",
        where=where,
        do=_INSTEAD.get(name, _RETURN_IT),
    )


def query_refused(pipeline: Pipeline, where: str) -> TransformError:
    """Return the error ``transform.action`` for a transform that started a query of its own."""
    return TransformError(
        "transform.action",
        f"the transform of {pipeline.name} calls writeStream.start(): its query would run beside the drain,"
        " without a lease, an audit or a record",
        where=where,
        do="return the frame: `sink:` decides where its rows go; a second output is a second pipeline",
    )


def _called(trace: TracebackType | None, transform: str) -> str:
    """Return the first pyspark function that the last line of the transform's own file called."""
    name = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == transform:
            name = ""
        elif not name and code.co_filename.startswith(tuple(pyspark.__path__)):
            name = code.co_name
        trace = trace.tb_next
    return name or "an action"
