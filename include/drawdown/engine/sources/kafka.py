"""Kafka sources: records of topics, their values read as json, csv, Avro or text."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from drawdown.engine.broker import require_broker
from drawdown.engine.sources.columns import CORRUPT, ORIGIN, PAYLOAD, options
from drawdown.engine.sources.kafka_values import read_value
from drawdown.spec import Pipeline, Project
from drawdown.spec.broker_options import spark_options

_VALUE = "_dd_value"


def read_kafka(session: SparkSession, project: Project, pipeline: Pipeline, name: str) -> DataFrame:
    """Records of a broker, with their values parsed.

    Raises:
        SourceError: the broker does not answer.
        SpecError: the schema file does not parse.
    """
    source = pipeline.sources[name]
    require_broker(project.brokers[source.broker], "source.broker", f"source {name} of {pipeline.name}")
    raw = (
        session.readStream.format("kafka")
        .options(**spark_options(project.brokers[source.broker]))
        # Aborted transactions are not data; Spark's own default reads them.
        .options(**{"kafka.isolation.level": "read_committed", "startingOffsets": "earliest"})
        .options(**options(source))
        .load()
    )
    origin = F.expr(
        "named_struct('file', cast(null as string), 'topic', topic, 'partition', partition, 'offset', offset)"
    ).alias(ORIGIN)
    delivery = [c for c in ("topic", "partition", "offset", "timestamp", "headers") if c in raw.columns]
    key = F.col("key").cast("string").alias("key")
    if source.value == "string":
        text = F.col("value").cast("string")
        others = [c for c in raw.columns if c not in ("key", "value")]
        never = F.lit(None).cast("string").alias(CORRUPT)
        return raw.select(key, text.alias("value"), *others, never, text.alias(PAYLOAD), origin)
    value = read_value(session, pipeline, name)
    frame = raw.select(
        value.parsed.alias(_VALUE),
        F.struct(key, *delivery).alias("_kafka"),
        value.payload.alias(PAYLOAD),
        origin,
    )
    # A record without a value (a tombstone) has no row to give: it counts as malformed.
    corrupt = F.when(F.col(PAYLOAD).isNull(), F.lit("")).otherwise(value.corrupt(_VALUE))
    return frame.select(
        *[F.col(f"{_VALUE}.`{c}`").alias(c) for c in value.columns],
        "_kafka",
        corrupt.alias(CORRUPT),
        PAYLOAD,
        ORIGIN,
    )
