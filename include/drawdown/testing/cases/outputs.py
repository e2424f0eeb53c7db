"""What a pipeline's sink holds, read as its readers would."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from drawdown.errors import SpecError
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def sink_rows(
    session: SparkSession, project: Project, pipeline: Pipeline, since: datetime
) -> DataFrame | None:
    """Return the rows of the sink; None before anything was written.

    Args:
        since: when the case began; from a Kafka topic, later records: topic, key and value, as text.

    Raises:
        SpecError: ``test.unreadable-sink``: rows of this sink cannot be read back.
    """
    sink = pipeline.sink
    if sink.path is not None:
        return table_rows(session, project, sink.path, sink.format, sink.schema_ddl)
    if sink.format == "postgres":
        return _table(session, project, pipeline)
    if sink.format == "memory":
        from drawdown.sinks.test.stage_memory import kept

        return kept(session, project, pipeline)
    if sink.topic is not None:
        return _topic(session, project, pipeline, sink.topic, since)
    raise SpecError(
        "test.unreadable-sink",
        f"rows in a {sink.format} sink cannot be read back, so there is nothing to compare"
        if sink.format != "kafka"
        else "the rows name their topics, so it is not known which ones to read",
        where=f"include/pipelines/{pipeline.name}/tests",
        do="remove the expected rows (the quarantine is still compared),"
        " or test the transform with `format: memory`",
    )


def table_rows(
    session: SparkSession, project: Project, path: str, format: str, ddl: str | None = None
) -> DataFrame | None:
    """Return a table or folder of files as readers see it; None before anything was written."""
    storage = Storage.of(project)
    if next(iter(storage.walk(path)), None) is None:
        return None
    reader = session.read.format(format)
    if format != "delta" and ddl is not None:
        reader = reader.schema(ddl)
    return reader.load(storage.path(path))


def _table(session: SparkSession, project: Project, pipeline: Pipeline) -> DataFrame | None:
    from drawdown.sinks.postgres.database import connected
    from drawdown.sinks.postgres.table import PostgresTable
    from drawdown.spark.declared_schema import declared

    table = PostgresTable.of(str(pipeline.sink.table))
    schema = declared(pipeline)
    assert schema is not None
    with connected(project.databases[pipeline.sink.database], table.name) as connection:
        if not table.exists(connection):
            return None
        rows = table.rows(connection, schema.fieldNames())
    return session.createDataFrame(rows, schema)


def _topic(
    session: SparkSession, project: Project, pipeline: Pipeline, topic: str, since: datetime
) -> DataFrame:
    from pyspark.sql import functions as F

    from drawdown.spec.connections.broker_options import spark_options

    raw = session.read.format("kafka").options(**spark_options(project.brokers[pipeline.sink.broker]))
    committed = raw.option("kafka.isolation.level", "read_committed")
    records = committed.option("subscribe", topic).load().where(F.col("timestamp") >= since)
    return records.selectExpr("topic", "CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value")
