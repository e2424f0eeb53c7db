"""`queries:` of quality.yaml: check them before anything is created, and give them the static tables."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from drawdown.errors import DrawdownError, SpecError, TransformError
from drawdown.spark.confined_query import NotConfinedError, UnlistedSqlError, confined_query
from drawdown.spark.sentences import spark_sentence
from drawdown.spark.sql_bounds import is_too_large, too_large
from drawdown.spec import Pipeline
from drawdown.spec.quality import SLICE, SliceQuery
from drawdown.static_checks.places import QUALITY, Places
from drawdown.values.nearest import did_you_mean


def prepare_queries(
    session: SparkSession, pipeline: Pipeline, schema: StructType, frames: Mapping[str, DataFrame]
) -> None:
    """Analyse each query over an empty slice, and register the static sources as views for the audit.

    Raises:
        TransformError: ``query.command``, ``query.streaming``, ``query.refused``, ``sql.*``.
        SpecError: ``query.unknown-table``: it reads something other than the slice and the static sources.
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
    name = query.name
    where = Places(pipeline).key(QUALITY, "queries", index, "unexpected")
    try:
        # A source that still arrives is a view of a transform in SQL: it is refused below, by its name.
        arriving = pipeline.streaming_sources if pipeline.transform.endswith(".sql") else ()
        views = {*pipeline.query_tables, *arriving}
        streaming = confined_query(session, query.unexpected, views, pipeline.sql_limits).isStreaming
    except NotConfinedError as more:
        raise _not_confined(pipeline, query, more, where) from None
    except UnlistedSqlError as unlisted:
        raise unlisted.error(f"the query {name} of {pipeline.name}", where) from None
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


def _not_confined(pipeline: Pipeline, query: SliceQuery, more: NotConfinedError, where: str) -> DrawdownError:
    if more.kind == "relation":
        return SpecError(
            "query.unknown-table",
            f"the query {query.name} of {pipeline.name} reads {more.name}, which it cannot see;"
            f" {did_you_mean(more.last_part, pipeline.query_tables)}",
            where=where,
            do=f"read `{SLICE}`, which has the sink's columns, or a source with `static: true`",
        )
    return TransformError(
        "query.command",
        f"the query {query.name} of {pipeline.name} is more than a query: {more.name}",
        where=where,
        do=f"write one SELECT of the unexpected rows of `{SLICE}`",
    )
