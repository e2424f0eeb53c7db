"""Restores the columns of quarantined rows from the stored text, and applies patches.

A row that the parser could read comes back as it was (``parsed``; of an older table, where it is JSON, the
payload), and a patch sees its columns with their types. A record that it could not read is parsed again, by
the schema and options of now; a patch sees its columns as text, and what it does not patch must parse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from drawdown.errors import SpecError, TransformError
from drawdown.sources.spark_system_columns import CORRUPT, ORIGIN, PAYLOAD, options, with_corrupt
from drawdown.spark.named_columns import ddl_of, named
from drawdown.spark.sentences import spark_sentence
from drawdown.spark.sql_checks import refused_in_condition
from drawdown.spark.sql_failures import as_refusal
from drawdown.spark.sql_gate import asks_a_query
from drawdown.spark.texts import lossy, no_text
from drawdown.spec import Pipeline

KEY = "_dd_key"
_TYPED, _TEXT = "_dd_typed", "_dd_text"
_READ_AGAIN = ("csv", "json")
_DELIVERY = "_kafka"


def parse_patch(session: SparkSession, given: Sequence[str]) -> dict[str, str]:
    """Each ``column = expression``, by column; they may compute, and nothing more (sql_gate.py).

    Raises:
        SpecError: ``quarantine.patch``: one is not of that form, no SQL, or asks a query.
    """
    patch = {}
    for text in given:
        column, _, expression = (part.strip() for part in text.partition("="))
        said = "" if column and expression else "it does not have the form column = expression"
        try:
            if "${" in expression:
                said = "variables are not allowed"
            if not said and asks_a_query(session, expression):
                said = "it contains a subquery"
            if not said and (refusal := refused_in_condition(session, expression)):
                said = f"it {refusal.what}"
        except PySparkException as cause:
            said = spark_sentence(cause)
        if said:
            raise SpecError(
                "quarantine.patch",
                f"{text!r} is not a patch: {said}",
                where="--set",
                do='write an expression over the row\'s own columns: --set "delay = cast(delay as int)"',
            )
        patch[column.strip("`")] = expression
    return patch


@dataclass(frozen=True)
class SetAsideColumns:
    """How the rows of one source are made again.

    Attributes:
        schema: the source's columns.
        patch: by column an SQL expression; columns of other sources are left alone.
    """

    pipeline: Pipeline
    name: str
    schema: StructType
    patch: Mapping[str, str]

    def rows(self, kept: DataFrame) -> DataFrame:
        """From the columns of set_aside.write_rows to those of a frame of sources.py, and KEY.

        CORRUPT holds the payload of what cannot be read.

        Raises:
            TransformError: ``quarantine.patch-refused``: Spark does not take an expression.
        """
        try:
            with as_refusal():
                return self._known(kept.where("not malformed")).unionByName(
                    self._malformed(kept.where("malformed"))
                )
        except PySparkException as cause:
            raise TransformError(
                "quarantine.patch-refused",
                f"Spark refused the patch for source {self.name}: {spark_sentence(cause)}",
                where="--set",
                do="fix the expression; nothing was replayed",
            ) from None

    def _known(self, kept: DataFrame) -> DataFrame:
        """Of rows that were read when they came."""
        text = F.coalesce("parsed", "payload")
        typed = F.from_json(text, with_corrupt(self.schema), {"columnNameOfCorruptRecord": CORRUPT})
        read = kept.withColumn(_TYPED, typed)
        columns = {
            field.name: F.coalesce(named(_TYPED, field.name), _delivery(field))
            for field in self.schema.fields
        }
        # Of an older Drawdown even a row that was read may hold what is no UTF-8.
        kept_bytes = [
            lossy(columns[field.name], field.dataType)
            for field in self.schema.fields
            if field.name not in self.patch
        ]
        lost = F.col("raw").isNotNull() & reduce(Column.__or__, kept_bytes, F.lit(False))
        return self._system(read, columns, F.when(lost | F.col(f"{_TYPED}.{CORRUPT}").isNotNull(), text))

    def _malformed(self, kept: DataFrame) -> DataFrame:
        """Of records that could not be read when they came."""
        source = self.pipeline.sources[self.name]
        form = source.value if source.format == "kafka" else source.format
        kept = kept.withColumn("payload", self._record())
        if not source.is_parsed:
            return self._without_parser(kept)
        record = StructType([field for field in self.schema.fields if field.name != _DELIVERY])
        if form not in _READ_AGAIN:
            columns = {f.name: F.lit(None).cast(f.dataType) for f in self.schema.fields}
            return self._system(kept, columns, F.coalesce("payload", F.lit("")))
        as_text = StructType([StructField(name, StringType()) for name in record.names])
        read = kept.withColumns({_TYPED: self._parse(form, record), _TEXT: self._parse(form, as_text)})
        columns = {}
        broken = [F.col(f"{_TEXT if self._patches else _TYPED}.{CORRUPT}").isNotNull()]
        for field in self.schema.fields:
            typed, text = (named(column, field.name) for column in (_TYPED, _TEXT))
            if field.name == _DELIVERY:
                columns[field.name] = _delivery(field)
            elif field.name in self.patch:
                columns[field.name] = text
            else:
                columns[field.name] = F.coalesce(typed, _of_folder(field))
                broken.append(typed.isNull() & text.isNotNull())
                # The parser of a single value does not say what it could not decode.
                broken.append(no_text(F.col("payload"), StringType()) & lossy(text, StringType()))
        corrupt = F.when(
            F.coalesce(reduce(Column.__or__, broken), F.lit(True)), F.coalesce("payload", F.lit(""))
        )
        return self._system(read, columns, corrupt)

    def _record(self) -> Column:
        """The record as it came, in the encoding that the source's options name now."""
        given = {key.lower(): value for key, value in options(self.pipeline.sources[self.name]).items()}
        encoding = given.get("encoding", given.get("charset", "UTF-8"))
        raw = F.col("raw").cast("string") if encoding.upper() == "UTF-8" else F.decode("raw", encoding)
        return F.coalesce(raw, F.col("payload"))

    def _without_parser(self, kept: DataFrame) -> DataFrame:
        """Return rows that came with all their columns, one of them not valid UTF-8."""
        read = kept.withColumn(_TYPED, F.from_json("parsed", self.schema))
        columns, broken = {}, [F.lit(False)]
        for field in self.schema.fields:
            column = named(_TYPED, field.name)
            whole = self._whole == field.name
            # The bytes of a line are kept, for a patch to decode; of any other column what could be read.
            columns[field.name] = F.coalesce("payload", column) if whole else column
            if field.name not in self.patch:
                unfit = no_text(F.col("payload"), StringType()) if whole else lossy(column, field.dataType)
                broken.append(unfit)
        lost = F.coalesce(reduce(Column.__or__, broken), F.lit(False))
        return self._system(read, columns, F.when(lost, F.col("payload")))

    @property
    def _whole(self) -> str | None:
        """The column that is the whole record, where there is one."""
        source = self.pipeline.sources[self.name]
        return "value" if source.format == "text" or source.value == "string" else None

    @property
    def _patches(self) -> bool:
        return any(name in self.patch for name in self.schema.names)

    def _parse(self, form: str, schema: StructType) -> Column:
        source = self.pipeline.sources[self.name]
        given = {} if source.format == "kafka" else options(source)
        parsing = {**given, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        full = with_corrupt(schema)
        if form == "json":
            return F.from_json("payload", full, parsing)
        return F.from_csv("payload", ddl_of(full), parsing)

    def _system(self, read: DataFrame, columns: Mapping[str, Column], corrupt: Column) -> DataFrame:
        """The columns, patched, then those that every source has."""
        origin = F.struct(*[F.col(part) for part in ("file", "topic", "partition", "offset")])
        unpatched = read.select(
            *[column.alias(name) for name, column in columns.items()],
            corrupt.alias(CORRUPT),
            F.col("payload").alias(PAYLOAD),
            origin.alias(ORIGIN),
            F.col("key").alias(KEY),
        )
        patched = {
            field.name: F.when(F.col(CORRUPT).isNull(), F.expr(self.patch[field.name])).cast(field.dataType)
            for field in self.schema.fields
            if field.name in self.patch
        }
        return unpatched.withColumns(patched) if patched else unpatched


def _delivery(field: StructField) -> Column:
    """Return ``_kafka`` of a record that kept only topic, partition and offset; NULL for other columns."""
    if field.name != _DELIVERY or not isinstance(field.dataType, StructType):
        return F.lit(None).cast(field.dataType)
    known = ("topic", "partition", "offset")
    return F.struct(
        *[
            (F.col(part.name) if part.name in known else F.lit(None)).cast(part.dataType).alias(part.name)
            for part in field.dataType.fields
        ]
    )


def _of_folder(field: StructField) -> Column:
    """The value of a partition column, from the names of the folders of the row's file; else NULL."""
    found = F.regexp_extract("file", f"/{re.escape(field.name)}=([^/]*)/", 1)
    return F.url_decode(F.nullif(found, F.lit(""))).try_cast(field.dataType)
