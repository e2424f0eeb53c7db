"""`queries:` of quality.yaml: check them before anything is created, and give them the static tables."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from drawdown.errors import TransformError
from drawdown.spark.sentences import spark_sentence
from drawdown.spark.sql_bounds import is_too_large, too_large
from drawdown.spark.sql_checks import refused_in_query, refused_unparsed
from drawdown.spark.sql_gate import executes, more_than_a_query
from drawdown.spec import Pipeline
from drawdown.spec.quality import SLICE
from drawdown.static_checks.places import QUALITY, Places


def prepare_queries(
    session: SparkSession, pipeline: Pipeline, schema: StructType, frames: Mapping[str, DataFrame]
) -> None:
    """Analyse each query over an empty slice, and register the static sources as views for the audit.

    Raises:
        TransformError: ``query.command``, ``query.streaming``, ``query.refused``, ``sql.*``.
    """
    if not pipeline.quality.queries:
        return
    for name, source in pipeline.sources.items():
        if source.static:
            frames[name].createOrReplaceTempView(name)
    session.createDataFrame([], schema).createOrReplaceTempView(SLICE)
    try:
        for index in range(len(pipeline.quality.queries)):
            _analyse(session, pipeline, index)
    finally:
        session.catalog.dropTempView(SLICE)


def _analyse(session: SparkSession, pipeline: Pipeline, index: int) -> None:
    query = pipeline.quality.queries[index]
    name, text = query.name, query.unexpected
    where = Places(pipeline).key(QUALITY, "queries", index, "unexpected")
    try:
        refusal = refused_unparsed(session, text)
        more = None if refusal else more_than_a_query(session, text)
        if refusal or (not more and (refusal := refused_in_query(session, text, pipeline.sql_limits))):
            what = f"the query {name} of {pipeline.name} {refusal.what}"
            raise TransformError(refusal.id, what, where=where, do=refusal.do)
        frame = None if more else session.sql(text)
        if frame is None or (more := executes(frame)):
            raise TransformError(
                "query.command",
                f"the query {name} of {pipeline.name} is more than a query: {more}",
                where=where,
                do=f"write one SELECT of the unexpected rows of `{SLICE}`",
            )
        streaming = frame.isStreaming
    except PySparkException as cause:
        if is_too_large(str(cause)):
            raise too_large(f"the query {name} of {pipeline.name}", cause, where) from None
        raise TransformError(
            "query.refused",
            f"Spark refused the query {name} of {pipeline.name} [{cause.getCondition()}]:"
            f" {spark_sentence(cause)}",
            where=where,
            do=f"fix the query; it sees `{SLICE}`, with the sink's columns, and the static sources by name",
        ) from None
    if streaming:
        raise TransformError(
            "query.streaming",
            f"the query {name} of {pipeline.name} reads a streaming source",
            where=where,
            do=f"compare `{SLICE}` with static sources",
        )
