"""Sources: from a spec to DataFrames that all look alike at the boundary.

A streaming frame has the user's columns and three of ours, which boundary.py reads and drops:
    _dd_corrupt  STRING   the raw record when the parser could not read it, else NULL
    _dd_payload  STRING   the record as it came (Kafka value) or NULL (files: see boundary.py)
    _dd_origin   STRUCT<file STRING, topic STRING, partition INT, offset BIGINT>
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from drawdown.engine.session import option_text
from drawdown.engine.sinks.schema import parse_ddl
from drawdown.errors import SourceError, SpecError
from drawdown.plan.kafka_client import client_config
from drawdown.spec import Pipeline, Project, Source
from drawdown.spec.broker_options import spark_options
from drawdown.storage import Storage

CORRUPT, PAYLOAD, ORIGIN = "_dd_corrupt", "_dd_payload", "_dd_origin"
SYSTEM_COLUMNS = (CORRUPT, PAYLOAD, ORIGIN)

_BROKER_SECONDS = 10.0

# Formats whose parser can meet a record it cannot read.
_PARSED = frozenset({"csv", "json", "xml"})
_FILES = _PARSED | {"parquet", "orc", "text"}


def read_stream(session: SparkSession, project: Project, pipeline: Pipeline, name: str) -> DataFrame:
    """The streaming frame of one source: the user's columns and SYSTEM_COLUMNS.

    Raises:
        SourceError: the folder to read is not there.
        SpecError: the schema file does not parse.
    """
    source = pipeline.sources[name]
    if source.format == "kafka":
        return _read_kafka(session, project, pipeline, name)
    if source.format in _FILES:
        return _read_files(session, project, pipeline, name)
    reader = session.readStream.format(source.format).options(**_options(source))
    frame = reader.load(Storage(project.storage_root).path(source.path) if source.path else None)
    return _with_system_columns(frame, corrupt=None, payload=None, file=None)


def read_static(session: SparkSession, project: Project, pipeline: Pipeline, name: str) -> DataFrame:
    """A static source, read whole at every run.

    Raises:
        SourceError: there is nothing at its path.
        SpecError: the schema file does not parse.
    """
    source = pipeline.sources[name]
    path = _existing_path(project, pipeline, name)
    reader = session.read.format(source.format).options(**_options(source))
    schema = _schema(pipeline, name)
    return (reader if schema is None else reader.schema(schema)).load(path)


def _read_files(session: SparkSession, project: Project, pipeline: Pipeline, name: str) -> DataFrame:
    source = pipeline.sources[name]
    path = _existing_path(project, pipeline, name)
    schema = _schema(pipeline, name)
    options = _options(source)
    if "sourceArchiveDir" in options:
        options["sourceArchiveDir"] = Storage(project.storage_root).path(options["sourceArchiveDir"])
    reader = session.readStream.format(source.format).options(**options)
    if source.format in _PARSED:
        # PERMISSIVE whatever the policy: Spark's DROPMALFORMED cannot count what it drops.
        reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=CORRUPT)
        schema = schema and _with_corrupt(schema)
    frame = (reader if schema is None else reader.schema(schema)).load(path)
    corrupt = CORRUPT if source.format in _PARSED else None
    return _with_system_columns(frame, corrupt=corrupt, payload=None, file="_metadata.file_path")


def _read_kafka(session: SparkSession, project: Project, pipeline: Pipeline, name: str) -> DataFrame:
    source = pipeline.sources[name]
    _require_broker(project, pipeline, name)
    raw = (
        session.readStream.format("kafka")
        .options(**spark_options(project.brokers[source.broker]))
        # Aborted transactions are not data; Spark's own default reads them.
        .options(**{"kafka.isolation.level": "read_committed", "startingOffsets": "earliest"})
        .options(**_options(source))
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
    schema = _schema(pipeline, name)
    if schema is None:
        raise SpecError(
            "source.no-schema",
            f"source {name} reads {source.value} values from Kafka and has no schema",
            where=str(pipeline.folder / "pipeline.yaml"),
            do="name a .ddl file under `schema:`",
        )
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    full = _with_corrupt(schema)
    if source.value == "json":
        parsed = F.from_json(text, full, options)
    else:
        ddl = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in full.fields)
        parsed = F.from_csv(text, ddl, options)
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


def _require_broker(project: Project, pipeline: Pipeline, name: str) -> None:
    """Spark would ask a broker that is not there for minutes; this asks for seconds."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    broker = project.brokers[pipeline.sources[name].broker]
    try:
        AdminClient(client_config(broker)).list_topics(timeout=_BROKER_SECONDS)
    except KafkaException as cause:
        raise SourceError(
            "source.broker",
            f"the broker of source {name} of {pipeline.name} does not answer: {cause.args[0].str()}",
            where=broker.bootstrap_servers,
            do="start the broker, or correct `brokers:` in include/project.yaml",
        ) from None


def _with_system_columns(
    frame: DataFrame, *, corrupt: str | None, payload: str | None, file: str | None
) -> DataFrame:
    user = [c for c in frame.columns if c != corrupt]
    null = "cast(null as string)"
    return frame.selectExpr(
        *[f"`{c}`" for c in user],
        f"{corrupt or null} as {CORRUPT}",
        f"{payload or null} as {PAYLOAD}",
        f"named_struct('file', {file or null}, 'topic', {null}, "
        f"'partition', cast(null as int), 'offset', cast(null as bigint)) as {ORIGIN}",
    )


def _options(source: Source) -> dict[str, str]:
    return {key: option_text(value) for key, value in source.options.items()}


def _existing_path(project: Project, pipeline: Pipeline, name: str) -> str:
    source = pipeline.sources[name]
    storage = Storage(project.storage_root)
    if source.path is None:
        raise SpecError(
            "source.no-path",
            f"source {name} of {pipeline.name} has no path",
            where=str(pipeline.folder / "pipeline.yaml"),
            do="give the folder inside the storage root under `path:`",
        )
    if not any(mark in source.path for mark in "*?[{") and not storage.exists(source.path):
        raise SourceError(
            "source.missing",
            f"source {name} of {pipeline.name}: there is no {source.path} in the storage",
            where=storage.path(source.path),
            do="create the folder, or correct `path:`, which is relative to `storage_root:`",
        )
    return storage.path(source.path)


def _with_corrupt(schema: StructType) -> StructType:
    return StructType([*schema.fields, StructField(CORRUPT, StringType())])


def _schema(pipeline: Pipeline, name: str) -> StructType | None:
    ddl = pipeline.source_schema_ddl(name)
    if ddl is None:
        return None
    file = pipeline.folder / str(pipeline.sources[name].schema_file)
    return parse_ddl(ddl, f"the schema of source {name} of {pipeline.name}", file)
