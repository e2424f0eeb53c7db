"""What is read of schemas and SQL without Spark, against what Spark makes of the same texts."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from drawdown.static_checks.names import missing_columns, missing_tables
from drawdown.static_checks.outputs import Outputs
from drawdown.static_checks.relation import Relation
from drawdown.static_checks.sql_parsing import NotSqlError, parse_query
from drawdown.values.ddl import NotDdlError, columns
from tests.engine.test_sql_corpus import HARMLESS
from tests.support.ddl_texts import TEXTS
from tests.support.sql_texts import QUERIES, TABLES


def by_spark(text: str) -> list[tuple[str, str]] | None:
    """The columns of a schema; None when Spark reads none."""
    try:
        found = StructType.fromDDL(text)
    except Exception:  # noqa: BLE001  (Spark ends some texts with Java's own errors)
        return None
    if not isinstance(found, StructType):
        return None
    return [(field.name, field.dataType.simpleString().lower()) for field in found.fields]


def without_spark(text: str) -> list[tuple[str, str]] | None:
    try:
        return [(each.name, each.type.lower()) for each in columns(text)]
    except NotDdlError:
        return None


@pytest.mark.capability("OWN-09")
def test_a_schema_is_read_as_spark_reads_it(spark: SparkSession) -> None:
    assert len(TEXTS) > 250
    found = {text: (by_spark(text), without_spark(text)) for text in TEXTS}
    assert {text: both for text, both in found.items() if both[0] != both[1]} == {}
    assert sum(both[0] is not None for both in found.values()) > 100, "accepted ones, too"


def said(query: str, known: dict[str, Relation]) -> list[str]:
    """What is said of a query without Spark."""
    try:
        parsed = parse_query(query)
    except NotSqlError as error:
        return [error.what]
    if parsed is None:
        return []
    missing = [*missing_tables(parsed, known, frozenset()), *missing_columns(parsed, Outputs(known))]
    return [each.name for each in missing]


def test_nothing_is_said_of_what_spark_takes(spark: SparkSession) -> None:
    known = {name: Relation.of(columns(ddl)) for name, ddl in TABLES.items()}
    for name, ddl in TABLES.items():
        spark.createDataFrame([], StructType.fromDDL(ddl)).createOrReplaceTempView(name)
    for query in QUERIES:
        schema = spark.sql(query).schema
        assert said(query, known) == [], query
        parsed = parse_query(query)
        assert parsed is not None, query
        output = Outputs(known).of_query(parsed)
        if output.whole:
            assert [each.name for each in output.columns] == schema.fieldNames(), query
        for column, field in zip(output.columns, schema.fields, strict=False):
            if output.whole and column.type:
                assert column.type == field.dataType.simpleString(), query
    for query in HARMLESS:
        assert said(query, {"events": Relation.of(columns("id INT, name STRING"))}) == [], query


@pytest.mark.full
def test_nothing_is_said_of_the_examples_of_sparks_own_functions(spark: SparkSession) -> None:
    examples = [
        example.strip()
        for (name,) in spark.sql("SHOW FUNCTIONS").collect()
        for example in examples_of(spark, name)
        if "reflect" not in example and "java_method" not in example
    ]
    assert len(examples) > 900
    wrong = {example: found for example in examples if (found := said(example, {}))}
    # What is said of the others, Spark says, too: some examples are of what is refused.
    assert [example for example in wrong if analysed(spark, example)] == []


def examples_of(spark: SparkSession, function: str) -> list[str]:
    try:
        rows = spark.sql(f"DESCRIBE FUNCTION EXTENDED `{function}`").collect()
    except PySparkException:  # an operator, such as `!=`
        return []
    text = "\n".join(row[0] for row in rows)
    return [
        part.split(";")[0] for part in text.split("> ")[1:] if part.startswith(("SELECT", "WITH", "FROM"))
    ]


def analysed(spark: SparkSession, query: str) -> bool:
    try:
        return bool(spark.sql(query).schema) or True
    except PySparkException:
        return False
