"""Run the user's SQL or Python, from named source frames to one output frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from drawdown.errors import DrawdownError, SpecError, TransformError
from drawdown.query.actions import action_refused, query_refused
from drawdown.spark.confined_query import NotConfinedError, UnlistedSqlError, confined_query
from drawdown.spark.sentences import spark_sentence
from drawdown.spark.sql_bounds import is_too_large, too_large
from drawdown.spark.user_code import RAISED, line_in, load_module, said
from drawdown.spec import Pipeline
from drawdown.values.nearest import did_you_mean


def run_transform(session: SparkSession, pipeline: Pipeline, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Return the transform's output frame.

    SQL sees every source as a temporary view of its name; Python gets them as a dict:
    ``transform(sources: dict[str, DataFrame]) -> DataFrame``.

    Raises:
        TransformError: it does not parse or analyse, is more than a query, raises, or returns something else.
        SpecError: ``transform.unknown-source``: SQL reads something that is no source of the pipeline.
    """
    file = pipeline.folder / pipeline.transform
    where = str(file)
    try:
        if pipeline.transform.endswith(".sql"):
            for name, frame in frames.items():
                frame.createOrReplaceTempView(name)
            return _queried(session, pipeline, frames, where)
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


def _queried(
    session: SparkSession, pipeline: Pipeline, frames: Mapping[str, DataFrame], where: str
) -> DataFrame:
    try:
        return confined_query(session, pipeline.transform_text, frames, pipeline.sql_limits)
    except UnlistedSqlError as unlisted:
        raise unlisted.error(f"the transform of {pipeline.name}", where) from None
    except NotConfinedError as more:
        if more.kind == "relation":
            raise SpecError(
                "transform.unknown-source",
                f"the transform of {pipeline.name} reads {more.name}, which is no source of the pipeline;"
                f" {did_you_mean(more.last_part, frames)}",
                where=where,
                do="correct the name, or add the table to `sources:` in pipeline.yaml, with `static: true`"
                " if each run is to read all of it",
            ) from None
        raise TransformError(
            "transform.command",
            f"the transform of {pipeline.name} is more than a query: {more.name}",
            where=where,
            do="write one SELECT over the sources; `sink:` decides where its rows go; for your own function"
            " use transform.py",
        ) from None


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
