"""What all kinds of sources share: system columns, options and the declared schema.

The system columns of a streaming frame:
    _dd_corrupt  STRING   the raw record when the parser could not read it, else NULL
    _dd_payload  STRING   the record as it came (Kafka value) or NULL (files: see rows/row_fates.py)
                          Spark does not check a STRING: these two may hold bytes that are not UTF-8
    _dd_origin   STRUCT<file STRING, topic STRING, partition INT, offset BIGINT>
    _dd_arrived  BIGINT   only in the replay of an interval: the batch with which a quarantined row came
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from drawdown.spark.declared_schema import parse_ddl
from drawdown.spark.named_columns import named
from drawdown.spark.session import option_text
from drawdown.spec import Pipeline, Source

CORRUPT, PAYLOAD, ORIGIN, ARRIVED = "_dd_corrupt", "_dd_payload", "_dd_origin", "_dd_arrived"
SYSTEM_COLUMNS = (CORRUPT, PAYLOAD, ORIGIN, ARRIVED)


def with_system_columns(
    frame: DataFrame, *, corrupt: str | None = None, file: str | None = None
) -> DataFrame:
    """Add SYSTEM_COLUMNS after the frame's own; `corrupt` and `file` are our own SQL, None: NULL."""
    user = [c for c in frame.columns if c not in (corrupt, *SYSTEM_COLUMNS)]
    null = "cast(null as string)"
    origin = f"named_struct('file', {file or null}, 'topic', {null}, "
    origin += "'partition', cast(null as int), 'offset', cast(null as bigint))"
    return frame.select(
        *map(named, user),
        F.expr(corrupt or null).alias(CORRUPT),
        F.expr(null).alias(PAYLOAD),
        F.expr(origin).alias(ORIGIN),
    )


def as_plain_path(file: Column) -> Column:
    """Return the path that Spark gives for a file in the form of `plain_path`."""
    # Spark names files by encoded URLs, in which a + stays a plus.
    path = F.url_decode(F.replace(file, F.lit("+"), F.lit("%2B")))
    return F.regexp_replace(path, "^file:/+", "/")


def with_corrupt(schema: StructType) -> StructType:
    """Add the column in which Spark's parsers put a record that they cannot read."""
    return StructType([*schema.fields, StructField(CORRUPT, StringType())])


def options(source: Source) -> dict[str, str]:
    """Return the options of the spec as Spark writes them."""
    return {key: option_text(value) for key, value in source.options.items()}


def schema_of(pipeline: Pipeline, name: str) -> StructType | None:
    """Return the declared schema of a source; None when the spec declares none.

    Raises:
        SpecError: it does not parse.
    """
    ddl = pipeline.source_schema_ddl(name)
    if ddl is None:
        return None
    file = pipeline.folder / (pipeline.sources[name].schema_file or "pipeline.yaml")
    return parse_ddl(ddl, f"the schema of source {name} of {pipeline.name}", file)
