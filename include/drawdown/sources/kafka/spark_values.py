"""The values of Kafka records as columns: json, csv and Avro; unreadable values are kept as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import JavaPackage
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StructType

from drawdown.errors import MachineError, SpecError
from drawdown.jvm.installation import how_to_set_up
from drawdown.sources.spark_system_columns import CORRUPT, PAYLOAD, schema_of, with_corrupt
from drawdown.spark.gateway import jvm_of
from drawdown.spark.named_columns import ddl_of
from drawdown.spark.sql_checks import is_large_avro
from drawdown.spec import Pipeline
from drawdown.values.json_text import read_json

# PERMISSIVE whatever the policy: the boundary counts malformed values and applies the policy.
_PERMISSIVE = {"mode": "PERMISSIVE"}
_WHOLE = "_dd_whole"


@dataclass(frozen=True)
class Value:
    """How a source's values are read.

    Attributes:
        parsed: a struct with `columns`, made of the column ``value``.
        payload: the value as text, for a quarantine; NULL where the record has none.
        corrupt: given the name of the parsed column, the raw text where it could not be read, else NULL.
    """

    parsed: Column
    payload: Column
    corrupt: Callable[[str], Column]
    columns: tuple[str, ...]


def read_value(session: SparkSession, pipeline: Pipeline, name: str) -> Value:
    """Return how the values of a source are read.

    Raises:
        SpecError: the schema file does not parse.
        MachineError: ``jars.no-avro``.
    """
    if pipeline.sources[name].value == "avro":
        _require_avro(session)
        return _avro(session, pipeline, name)
    schema = schema_of(pipeline, name)
    assert schema is not None  # the spec has one: Source._check_kafka
    return _text(pipeline.sources[name].value, schema, pipeline.bounds_of(name).nesting)


def _text(format: str, schema: StructType, nesting: int) -> Value:
    text = F.col("value").cast("string")
    parsing = {**_PERMISSIVE, "columnNameOfCorruptRecord": CORRUPT}
    full = with_corrupt(schema)
    if format == "json":
        bounded = {**parsing, "maxNestingDepth": str(nesting)}
        parsed = F.from_json(text, full, bounded)
    else:
        parsed = F.from_csv(text, ddl_of(full), parsing)
    return Value(parsed, text, lambda value: F.col(f"{value}.{CORRUPT}"), tuple(schema.fieldNames()))


def _avro(session: SparkSession, pipeline: Pipeline, name: str) -> Value:
    """Read plain Avro: one record per value, without a registry's header; the payload is in Base64.

    A value that cannot be decoded becomes a record of nulls, which could also be a real record. To tell them
    apart, the reader's schema adds a field with default true, which only the former leaves null
    (AvroDataToCatalyst, Spark 4.2).
    """
    written = _avro_schema(session, pipeline, name)
    mark = {"name": _WHOLE, "type": "boolean", "default": True}
    wanted = {**written, "fields": [*written["fields"], mark]}
    parsing = {**_PERMISSIVE, "avroSchema": json.dumps(wanted)}
    return Value(
        from_avro(F.col("value"), json.dumps(written), parsing),
        F.base64("value"),
        lambda value: F.when(F.col(f"{value}.{_WHOLE}").isNull(), F.col(PAYLOAD)),
        tuple(field["name"] for field in written["fields"]),
    )


def _avro_schema(session: SparkSession, pipeline: Pipeline, name: str) -> dict[str, Any]:
    source = pipeline.sources[name]
    try:
        schema = read_json(source.schema_ddl or "")
    except ValueError as cause:
        schema, said = None, str(cause)
    else:
        said = "it is no record with fields"
        if is_large_avro(session, source.schema_ddl or ""):
            schema, said = None, "it has more than 10,000 fields once each name in it is written out"
    if not (isinstance(schema, dict) and schema.get("type") == "record" and schema.get("fields")):
        raise SpecError(
            "schema.unreadable",
            f"the schema of source {name} of {pipeline.name} is not an Avro schema of a record: {said}",
            where=str(pipeline.folder / str(source.schema_file)),
            do='write it as {"type": "record", "name": ..., "fields": [...]}',
        )
    return schema


def _require_avro(session: SparkSession) -> None:
    """Raise MachineError without Spark's Avro module; Py4J shows an unknown class as a package.

    Spark itself reports it only at analysis, and does not say what to do.
    """
    jvm = jvm_of(session)
    if isinstance(jvm.org.apache.spark.sql.avro.AvroDataToCatalyst, JavaPackage):
        raise MachineError(
            "jars.no-avro",
            "Spark reads Avro values only with the jar spark-avro, which is not on the class path",
            where="the driver's class path",
            do=f"{how_to_set_up()}, or put org.apache.spark:spark-avro_2.13 onto the cluster's class path",
        )
