"""Kafka sources: records of topics, their values read as json, csv, Avro or text."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from drawdown.brokers.client import require_broker
from drawdown.brokers.offsets import Partition
from drawdown.sources.kafka.options import ONLY_STREAMS, SUBSCRIPTIONS
from drawdown.sources.kafka.replay import offsets_to_read
from drawdown.sources.kafka.spark_values import read_value
from drawdown.sources.replay_basis import ReplayedSource
from drawdown.sources.spark_system_columns import CORRUPT, ORIGIN, PAYLOAD, options
from drawdown.spark.named_columns import named
from drawdown.spec import Pipeline, Project, Source
from drawdown.spec.connections.broker_options import spark_options

_VALUE = "_dd_value"
_TOO_LONG = "_dd_too_long"
# Spark's default would read the records of aborted transactions too.
_COMMITTED = {"kafka.isolation.level": "read_committed"}


def read_kafka(session: SparkSession, project: Project, pipeline: Pipeline, name: str) -> DataFrame:
    """Return the records of a broker as a stream, with their values parsed.

    Raises:
        SourceError: the broker does not answer.
        SpecError: the schema file does not parse.
    """
    source = pipeline.sources[name]
    require_broker(project.brokers[source.broker], "source.broker", f"source {name} of {pipeline.name}")
    raw = (
        session.readStream.format("kafka")
        .options(**spark_options(project.brokers[source.broker]))
        .options(**_COMMITTED, startingOffsets="earliest")
        .options(**options(source))
        .load()
    )
    return _columns(session, pipeline, name, raw)


def read_replayed_offsets(session: SparkSession, of: ReplayedSource, _: StructType | None) -> DataFrame:
    """Return the records that a replay reads as a batch, with the columns of `read_kafka`.

    A missing offset ends the query.

    Raises:
        RefusedError, SourceError: as `offsets_to_read`.
    """
    ranges, source, project, pipeline, name = (
        offsets_to_read(of), of.source, of.workspace.project, of.pipeline, of.name,
    )  # fmt: skip
    reader = (
        session.read.format("kafka")
        .options(**spark_options(project.brokers[source.broker]))
        .options(**_COMMITTED)
        .options(
            **{
                key: value
                for key, value in options(source).items()
                if key not in (*SUBSCRIPTIONS, *ONLY_STREAMS)
            }
        )
        .options(failOnDataLoss="true")
    )
    if not ranges.end:
        # The query had not read any partition yet.
        never = reader.options(**_subscription(source)).load().where(F.lit(False))
        return _columns(session, pipeline, name, never)
    partitions: dict[str, list[int]] = {}
    for topic, number in ranges.end:
        partitions.setdefault(topic, []).append(number)
    raw = reader.options(
        assign=json.dumps(partitions),
        startingOffsets=_as_spark_reads(ranges.start),
        endingOffsets=_as_spark_reads(ranges.end),
    ).load()
    return _columns(session, pipeline, name, raw)


def _columns(session: SparkSession, pipeline: Pipeline, name: str, raw: DataFrame) -> DataFrame:
    source = pipeline.sources[name]
    origin = F.expr(
        "named_struct('file', cast(null as string), 'topic', topic, 'partition', partition, 'offset', offset)"
    ).alias(ORIGIN)
    delivery = [c for c in ("topic", "partition", "offset", "timestamp", "headers") if c in raw.columns]
    key = F.col("key").cast("string").alias("key")
    if source.value == "string":
        text = F.col("value").cast("string")
        others = [c for c in raw.columns if c not in ("key", "value")]
        broken = F.when(~F.is_valid_utf8(text) | _too_long(pipeline, name), text).alias(CORRUPT)
        return raw.select(key, text.alias("value"), *others, broken, text.alias(PAYLOAD), origin)
    value = read_value(session, pipeline, name)
    frame = raw.select(
        F.when(~_too_long(pipeline, name), value.parsed).alias(_VALUE),
        F.struct(key, *delivery).alias("_kafka"),
        value.payload.alias(PAYLOAD),
        _too_long(pipeline, name).alias(_TOO_LONG),
        origin,
    )
    # A record without a value (a tombstone) has no row: it counts as malformed. So does a value that is not
    # UTF-8: Spark's parsers would replace the characters that they cannot read.
    corrupt = (
        F.when(F.col(PAYLOAD).isNull(), F.lit(""))
        .when(~F.is_valid_utf8(PAYLOAD) | F.col(_TOO_LONG), F.col(PAYLOAD))
        .otherwise(value.corrupt(_VALUE))
    )
    return frame.select(
        *[named(_VALUE, c).alias(c) for c in value.columns],
        "_kafka",
        corrupt.alias(CORRUPT),
        PAYLOAD,
        ORIGIN,
    )


def _too_long(pipeline: Pipeline, name: str) -> Column:
    """Whether a record's value is longer than the source's limit; false for a record without one."""
    return F.coalesce(F.octet_length("value") > pipeline.bounds_of(name).record, F.lit(False))


def _subscription(source: Source) -> dict[str, str]:
    return {key: value for key, value in options(source).items() if key in SUBSCRIPTIONS}


def _as_spark_reads(offsets: Mapping[Partition, int]) -> str:
    """Return JSON of {topic: {partition: offset}} (JsonUtils of Spark's Kafka connector)."""
    found: dict[str, dict[str, int]] = {}
    for (topic, number), offset in offsets.items():
        found.setdefault(topic, {})[str(number)] = offset
    return json.dumps(found)
