"""Kafka sources: records of topics, their values read as json, csv or text."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from drawdown.engine.broker import require_broker
from drawdown.engine.sources.columns import CORRUPT, ORIGIN, PAYLOAD, options, schema_of, with_corrupt
from drawdown.errors import SpecError
from drawdown.spec import Pipeline, Project
from drawdown.spec.broker_options import spark_options


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
    text = F.col("value").cast("string")
    if source.value == "string":
        return raw.select(
            F.col("key").cast("string").alias("key"),
            text.alias("value"),
            *[c for c in raw.columns if c not in ("key", "value")],
            F.lit(None).cast("string").alias(CORRUPT),
            text.alias(PAYLOAD),
            origin,
        )
    schema = schema_of(pipeline, name)
    if schema is None:
        raise SpecError(
            "source.no-schema",
            f"source {name} reads {source.value} values from Kafka and has no schema",
            where=str(pipeline.folder / "pipeline.yaml"),
            do="name a .ddl file under `schema:`",
        )
    parsing = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    full = with_corrupt(schema)
    if source.value == "json":
        parsed = F.from_json(text, full, parsing)
    else:
        ddl = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in full.fields)
        parsed = F.from_csv(text, ddl, parsing)
    delivery = [
        "topic",
        "partition",
        "offset",
        "timestamp",
        *(["headers"] if "headers" in raw.columns else []),
    ]
    frame = raw.select(
        parsed.alias("_dd_value"),
        F.struct(F.col("key").cast("string").alias("key"), *delivery).alias("_kafka"),
        text.alias(PAYLOAD),
        origin,
    )
    # A record without a value (a tombstone) has no row to give: it counts as malformed.
    corrupt = F.when(F.col(PAYLOAD).isNull(), F.lit("")).otherwise(F.col(f"_dd_value.{CORRUPT}"))
    return frame.select(
        *[F.col(f"_dd_value.`{c}`").alias(c) for c in schema.fieldNames()],
        "_kafka",
        corrupt.alias(CORRUPT),
        PAYLOAD,
        ORIGIN,
    )
