"""Run the user's SQL or Python, from named source frames to one output frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from drawdown.errors import DrawdownError, TransformError
from drawdown.query.actions import action_refused, query_refused
from drawdown.spark.sentences import spark_sentence
from drawdown.spark.sql_bounds import is_too_large, too_large
from drawdown.spark.sql_checks import refused_in_query, refused_unparsed
from drawdown.spark.sql_gate import executes, more_than_a_query
from drawdown.spark.user_code import RAISED, line_in, load_module, said
from drawdown.spec import Pipeline


def run_transform(session: SparkSession, pipeline: Pipeline, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Return the transform's output frame.

    SQL sees every source as a temporary view of its name; Python gets them as a dict:
    ``transform(sources: dict[str, DataFrame]) -> DataFrame``.

    Raises:
        TransformError: it does not parse or analyse, is more than a query, raises, or returns something else.
    """
    file = pipeline.folder / pipeline.transform
    where = str(file)
    try:
        if pipeline.transform.endswith(".sql"):
            for name, frame in frames.items():
                frame.createOrReplaceTempView(name)
            return _queried(session, pipeline, where)
        result = _function_of(pipeline, file)(dict(frames))
        _refuse_own_queries(session, pipeline, where)
    except DrawdownError:
        raise
    except PySparkException as cause:
        action = action_refused(pipeline, line_in(cause, file), cause)
        raise action or _refused_by_spark(pipeline, where, cause) from None
    except RAISED as cause:
        raise TransformError(
            "transform.raised",
            f"the transform of {pipeline.name} raised {said(cause)}",
            where=line_in(cause, file),
            do="fix the transform; nothing was read or written",
        ) from None
    if not isinstance(result, DataFrame):
        raise TransformError(
            "transform.no-frame",
            f"the transform of {pipeline.name} returned {type(result).__name__}, not a DataFrame",
            where=where,
            do="return the DataFrame to be written",
        )
    return result


def _queried(session: SparkSession, pipeline: Pipeline, where: str) -> DataFrame:
    text = pipeline.transform_text
    refusal = refused_unparsed(session, text)
    if refusal is None and (name := more_than_a_query(session, text)):
        raise _more_than_a_query(pipeline, where, name)
    if refusal := refusal or refused_in_query(session, text, pipeline.sql_limits):
        what = f"the transform of {pipeline.name} {refusal.what}"
        raise TransformError(refusal.id, what, where=where, do=refusal.do)
    frame = session.sql(pipeline.transform_text)
    if name := executes(frame):
        raise _more_than_a_query(pipeline, where, name)
    return frame


def _more_than_a_query(pipeline: Pipeline, where: str, name: str) -> TransformError:
    return TransformError(
        "transform.command",
        f"the transform of {pipeline.name} is more than a query: {name}",
        where=where,
        do="write one SELECT over the sources; `sink:` decides where its rows go; for your own function"
        " use transform.py",
    )


def _refuse_own_queries(session: SparkSession, pipeline: Pipeline, where: str) -> None:
    running = session.streams.active
    for query in running:
        query.stop()
    if running:
        raise query_refused(pipeline, where)


def _function_of(pipeline: Pipeline, file: Path) -> Callable[[dict[str, DataFrame]], object]:
    function = getattr(load_module(f"drawdown_transform_{pipeline.name}", file), "transform", None)
    if not callable(function):
        raise TransformError(
            "transform.no-function",
            f"{pipeline.transform} of {pipeline.name} has no function `transform`",
            where=str(file),
            do="define transform(sources: dict[str, DataFrame]) -> DataFrame",
        )
    return cast("Callable[[dict[str, DataFrame]], object]", function)


def _refused_by_spark(pipeline: Pipeline, where: str, cause: PySparkException) -> TransformError:
    if is_too_large(str(cause)):
        return too_large(f"the transform of {pipeline.name}", cause, where)
    condition = cause.getCondition() or type(cause).__name__
    return TransformError(
        "transform.refused",
        f"Spark refused the transform of {pipeline.name} [{condition}]: {spark_sentence(cause)}",
        where=where,
        do="fix the transform; nothing was read or written",
    )
