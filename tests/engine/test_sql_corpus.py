"""What SQL of a pipeline may be, and may not: texts against Spark's real parser and analyser.

A text that is not refused by its kind of plan is analysed, which is when Spark would resolve functions, open
tables by their paths and carry commands out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from drawdown.errors import SpecError, TransformError
from drawdown.quality import gx_import
from drawdown.quarantine.spark_restored_columns import parse_patch
from drawdown.query.conditions import refuse_wide_conditions
from drawdown.spark.session import query_session
from drawdown.spark.sql_gate import asks_a_query, executes, more_than_a_query
from tests.support.quality import pipeline_with

HARMLESS = [
    "SELECT * FROM events",
    "TABLE events",
    "VALUES (1, 'one'), (2, 'two')",
    "SELECT id, upper(name) AS name FROM events WHERE id > 1 AND name LIKE 'a%'",
    "SELECT DISTINCT name FROM events",
    "SELECT to_json(struct(*)) AS value FROM events",
    "SELECT to_json(struct(id, upper(name))) AS value FROM events",
    "SELECT name, count(*) AS n FROM events GROUP BY name HAVING count(*) > 1",
    "SELECT name, count(*) AS n FROM events GROUP BY GROUPING SETS ((name), ())",
    "SELECT name, count(*) AS n FROM events GROUP BY ROLLUP (name) ORDER BY n LIMIT 3 OFFSET 1",
    "SELECT name, sum(id) FILTER (WHERE id > 1) AS s FROM events GROUP BY ALL",
    "SELECT id, sum(id) OVER w AS s FROM events WINDOW w AS (PARTITION BY name ORDER BY id)",
    "SELECT *, row_number() OVER (ORDER BY id) AS nth FROM events QUALIFY nth = 1",
    "SELECT a.id FROM events a JOIN events b USING (id)",
    "SELECT a.id FROM events a LEFT OUTER JOIN events b ON a.id = b.id AND b.name IS NOT NULL",
    "SELECT a.id FROM events a LEFT SEMI JOIN events b ON a.id = b.id",
    "SELECT /*+ BROADCAST(b) */ * FROM events a NATURAL JOIN events b",
    "SELECT * FROM events a, LATERAL (SELECT max(b.id) AS m FROM events b WHERE b.name = a.name)",
    "SELECT id FROM events WHERE id IN (SELECT id FROM events WHERE name = 'a')",
    "SELECT id FROM events e WHERE EXISTS (SELECT 1 FROM events o WHERE o.id = e.id)",
    "SELECT id, (SELECT max(id) FROM events) AS most FROM events",
    "WITH c AS (SELECT id FROM events) SELECT * FROM c UNION ALL SELECT 1",
    "SELECT id FROM events INTERSECT SELECT 1",
    "SELECT id FROM events EXCEPT SELECT 1",
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT * FROM c",
    "SELECT name, letter FROM events LATERAL VIEW explode(split(name, '')) AS letter",
    "SELECT * FROM range(10)",
    "SELECT * FROM events, LATERAL explode(split(name, ''))",
    "SELECT * FROM events PIVOT (count(id) FOR name IN ('a', 'b'))",
    "SELECT * FROM (SELECT id, id AS a, id AS b FROM events) UNPIVOT (v FOR k IN (a, b))",
    "SELECT * FROM events TABLESAMPLE (10 PERCENT)",
    "SELECT * EXCEPT (name) FROM events",
    "SELECT name, id FROM events DISTRIBUTE BY name SORT BY id",
    "SELECT /*+ REPARTITION(2) */ * FROM events",
    "FROM events |> WHERE id = 1 |> AGGREGATE count(*) AS n GROUP BY name |> EXTEND 1 AS x |> DROP x",
    "SELECT CASE WHEN id = 1 THEN 'one' ELSE name END, CAST(id AS STRING), id::bigint, -id, NOT (id = 1)"
    " FROM events",
    "SELECT transform(array(1, 2), x -> x + 1), struct(id).id, map('a', 1)['a'] FROM events",
    "SELECT date_trunc('hour', TIMESTAMP '2024-01-01 00:30:00'), extract(year FROM current_date())",
    "SELECT from_json(name, 'k INT').k, get_json_object(name, '$.k') FROM events",
    "SELECT concat('$', '{env:HOME}') AS text",
    "SELECT first(id) AS a, last(name) IGNORE NULLS AS b, any_value(id) AS c FROM events",
]

HOSTILE = [
    # Commands, and what is neither a command nor a query
    "DROP TABLE events",
    "SET spark.sql.shuffle.partitions = 1",
    "RESET",
    "ADD JAR '/tmp/x.jar'",
    "ADD FILE '/etc/passwd'",
    "LIST JARS",
    "CREATE TEMPORARY FUNCTION f AS 'cls' USING JAR '/x.jar'",
    "CREATE TEMPORARY FUNCTION IDENTIFIER('a' || 'b') AS 'cls' USING JAR '/x.jar'",
    "DROP TABLE IDENTIFIER('ev' || 'ents')",
    "SELECT * FROM IDENTIFIER('ev' || 'ents')",
    "RESTORE TABLE events TO VERSION AS OF 1",
    "CREATE TABLE a SHALLOW CLONE events LOCATION '/tmp/stolen'",
    "CREATE TABLE stolen USING delta LOCATION '/tmp/stolen' AS SELECT 1",
    "CREATE OR REPLACE TEMPORARY VIEW events AS SELECT 1",
    "CREATE DATABASE d LOCATION '/tmp/stolen'",
    "DESCRIBE HISTORY '/any/path'",
    "DESCRIBE DETAIL '/any/path'",
    "DESCRIBE TABLE events",
    "EXPLAIN SELECT 1",
    "SHOW TABLES",
    "SHOW FUNCTIONS",
    "CACHE TABLE events",
    "REFRESH '/any/path'",
    "VACUUM '/any/path' RETAIN 0 HOURS",
    "OPTIMIZE '/any/path'",
    "CONVERT TO DELTA parquet.`/any/path`",
    "GENERATE symlink_format_manifest FOR TABLE delta.`/any/path`",
    "DELETE FROM delta.`/any/path`",
    "UPDATE events SET id = 1",
    "MERGE INTO events USING events AS s ON false WHEN NOT MATCHED THEN INSERT *",
    "INSERT INTO events SELECT 1, 'a'",
    "WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c",
    "FROM events INSERT INTO a SELECT id INSERT INTO b SELECT id",
    "INSERT OVERWRITE DIRECTORY '/tmp/stolen' USING csv SELECT * FROM events",
    "EXECUTE IMMEDIATE 'DROP TABLE events'",
    "CALL system.anything()",
    "BEGIN SELECT 1; END",
    "DECLARE VARIABLE x = 1",
    "SET VAR x = 1",
    "USE other",
    # Programs
    "SELECT TRANSFORM(id, name) USING 'cat' AS (id, name) FROM events",
    "FROM events MAP id USING 'cat' AS (x)",
    "WITH c AS (SELECT TRANSFORM(id) USING 'cat' FROM events) SELECT * FROM c",
    "SELECT id, (SELECT TRANSFORM(1) USING 'cat') AS name FROM events",
    "SELECT id FROM events WHERE EXISTS (SELECT TRANSFORM(1) USING 'cat' AS (x INT))",
    "SELECT sum(id) OVER w FROM events WINDOW w AS (ORDER BY (SELECT TRANSFORM(1) USING 'cat' AS (x INT)))",
    "SELECT sum(id) OVER (ORDER BY (SELECT TRANSFORM(1) USING 'cat' AS (x INT))) FROM events",
    "SELECT id FROM events GROUP BY id HAVING max(id) > (SELECT TRANSFORM(1) USING 'cat' AS (x INT))",
    "SELECT * FROM events LATERAL VIEW explode(array((SELECT TRANSFORM(1) USING 'cat' AS (x INT)))) AS y",
    "SELECT * FROM events PIVOT (max((SELECT TRANSFORM(1) USING 'cat' AS (x INT))) FOR name IN ('a'))",
    "SELECT * FROM events LIMIT (SELECT TRANSFORM(1) USING 'cat' AS (x INT))",
    "SELECT * FROM events, LATERAL (SELECT TRANSFORM(1) USING 'cat' AS (x INT))",
    "SELECT * FROM range((SELECT TRANSFORM(1) USING 'cat' AS (x INT)))",
    "FROM events |> WHERE id = (SELECT TRANSFORM(1) USING 'cat' AS (x INT))",
    # Java, files, tables by their paths
    "SELECT reflect('java.lang.System', 'getProperty', 'user.home')",
    "SELECT java_method('java.lang.System', 'getenv', 'HOME')",
    "SELECT try_reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT builtin.reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT system.builtin.reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'getenv', 'HOME')",
    "SELECT * FROM text.`/etc/hosts`",
    "SELECT * FROM binaryFile.`/etc/hosts`",
    "SELECT * FROM delta.`{table}`",
    "SELECT * FROM delta.`{table}` VERSION AS OF 0",
    "SELECT * FROM delta.`{table}@v0`",
    "SELECT * FROM table_changes_by_path('{table}', 0)",
    "SELECT * FROM table_changes('delta.`{table}`', 0)",
    "SELECT * FROM python_worker_logs()",
]

HOSTILE_CONDITIONS = [
    "EXISTS (SELECT TRANSFORM(1) USING 'cat' AS (x INT))",
    "id IN (SELECT id FROM events)",
    "id = (SELECT max(id) FROM events)",
    "sum(id) OVER (ORDER BY (SELECT 1)) > 0",
    "exists(array(1), x -> x = (SELECT 1))",
    "CASE WHEN true THEN (SELECT 1) END = 1",
]
HARMLESS_CONDITIONS = ["id > 0", "name IS NOT NULL AND length(name) < 9", "exists(array(id), x -> x > 0)"]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    made = query_session(spark, pipeline_with("rules: []"))
    made.sql("SELECT 1 AS id, 'a' AS name").createOrReplaceTempView("events")
    yield made
    made.catalog.dropTempView("events")


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody else's Delta table, with its changes."""
    path = tmp_path_factory.mktemp("others") / "table"
    writer = spark.range(3).write.format("delta").option("delta.enableChangeDataFeed", "true")
    writer.save(str(path))
    return path


@pytest.mark.capability("OWN-09")
@pytest.mark.parametrize("text", HARMLESS)
def test_what_reads_and_computes_is_analysed(session: SparkSession, text: str) -> None:
    assert more_than_a_query(session, text) is None
    assert executes(session.sql(text)) is None


@pytest.mark.capability("OWN-09")
@pytest.mark.parametrize("text", HOSTILE)
def test_what_does_more_is_refused_before_it_does_it(session: SparkSession, text: str, table: Path) -> None:
    text = text.replace("{table}", str(table))
    if more_than_a_query(session, text) is None:
        with pytest.raises(PySparkException):
            session.sql(text)


def test_the_others_table_is_there_for_sessions_of_our_own(spark: SparkSession, table: Path) -> None:
    assert spark.sql(f"SELECT * FROM delta.`{table}`").count() == 3
    assert spark.sql(f"SELECT * FROM table_changes_by_path('{table}', 0)").count() == 3


def test_a_command_is_seen_in_an_analysed_plan_too(spark: SparkSession) -> None:
    assert executes(spark.sql("SHOW TABLES")) is not None
    assert executes(spark.sql("SELECT 1")) is None


def test_variables_are_not_put_into_a_text(session: SparkSession) -> None:
    assert session.sql("SELECT '${env:PATH}${system:user.home}' AS text").collect()[0][0] == (
        "${env:PATH}${system:user.home}"
    )


@pytest.mark.capability("OWN-09")
@pytest.mark.parametrize("condition", HOSTILE_CONDITIONS)
def test_a_condition_asks_no_query_wherever_it_stands(session: SparkSession, condition: str) -> None:
    assert asks_a_query(session, condition)
    rule = f'rules: [{{name: odd, check: "{condition}", on_fail: warn}}]'
    with pytest.raises(TransformError, match=r"rule\.subquery"):
        refuse_wide_conditions(session, pipeline_with(rule))
    kwargs = f'{{column: flight, row_condition: "{condition}", condition_parser: spark}}'
    expectation = f"expectations: [{{type: expect_column_values_to_not_be_null, kwargs: {kwargs}}}]"
    with pytest.raises(TransformError, match=r"expectation\.subquery"):
        refuse_wide_conditions(session, pipeline_with(expectation))
    with pytest.raises(SpecError, match=r"quarantine\.patch"):
        parse_patch(session, [f"id = {condition}"])


def test_what_is_no_condition_is_said_in_a_sentence(session: SparkSession) -> None:
    rule = 'rules: [{name: odd, check: "flight >", on_fail: warn}]'
    with pytest.raises(TransformError, match=r"rule\.refused"):
        refuse_wide_conditions(session, pipeline_with(rule))
    kwargs = '{column: flight, row_condition: "flight IN (", condition_parser: spark}'
    expectation = f"expectations: [{{type: expect_column_values_to_not_be_null, kwargs: {kwargs}}}]"
    with pytest.raises(TransformError, match=r"expectation\.refused") as caught:
        refuse_wide_conditions(session, pipeline_with(expectation))
    assert "\n" not in caught.value.what


@pytest.mark.parametrize("condition", HARMLESS_CONDITIONS)
def test_a_condition_computes(session: SparkSession, condition: str) -> None:
    assert not asks_a_query(session, condition)
    assert parse_patch(session, [f"id = {condition}"]) == {"id": condition}


@pytest.mark.parametrize(
    "given",
    [
        {"condition_parser": "spark", "row_condition": HOSTILE_CONDITIONS[0]},
        {"row_condition": {"type": "pass_through", "pass_through_filter": HOSTILE_CONDITIONS[0]}},
    ],
    ids=["text", "structure"],
)
def test_great_expectations_filters_by_no_query_however_it_is_told(
    spark: SparkSession, given: dict[str, object]
) -> None:
    gx_import.load()
    from great_expectations.exceptions.exceptions import GreatExpectationsError

    from drawdown.quality.one_pass import OnePassEngine

    frame = spark.range(3).toDF("id")
    condition = given.pop("row_condition")
    with pytest.raises(GreatExpectationsError, match="contains a subquery"):
        OnePassEngine(frame, 3)._apply_row_condition_filter(frame, condition, given)


@pytest.mark.parametrize(
    "quality",
    [
        """rules: [{name: odd, check: "origin = '${env:HOME}'", on_fail: warn}]""",
        """queries: [{name: odd, unexpected: "SELECT '${env:HOME}' FROM slice"}]""",
        """expectations: [{type: expect_column_values_to_not_be_null, kwargs: {column: origin,"""
        """ row_condition: "origin = '${env:HOME}'", condition_parser: spark}}]""",
    ],
    ids=["rule", "query", "expectation"],
)
def test_no_text_of_quality_yaml_names_a_variable(quality: str) -> None:
    with pytest.raises(SpecError, match=r"spec\.sql-variable"):
        pipeline_with(quality)


def test_a_column_is_no_sql() -> None:
    from drawdown.quality.expectations import validate_expectations

    kwargs = '{column_list: [flight, "(SELECT 1)"], sum_total: 1, ignore_row_if: never}'
    with pytest.raises(SpecError, match=r"quality\.bad-argument"):
        validate_expectations(
            pipeline_with(f"expectations: [{{type: expect_multicolumn_sum_to_equal, kwargs: {kwargs}}}]")
        )
