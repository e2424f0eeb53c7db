"""transform.sql and what validate finds in it without Spark: the mistake, its line, and the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.static_checks.check import static_error
from drawdown.static_checks.outputs import Outputs
from drawdown.static_checks.relation import Relation
from drawdown.static_checks.sql_parsing import parse_query
from drawdown.values.column import Column
from tests.support.spec_folders import SpecFolders

PIPELINE = """\
sources:
  events: {format: json, path: landing/events, schema: "id INT, name STRING, at TIMESTAMP, amount DOUBLE,
    tags ARRAY<STRING>, who STRUCT<first: STRING, last: STRING>"}
  people: {format: kafka, value: csv, schema: "id INT, name STRING, age INT", options: {subscribe: people}}
  lines: {format: kafka, value: string, options: {subscribe: lines}}
  places: {format: delta, path: tables/places, static: true}
sink: {format: delta, path: tables/out, schema: "SINK"}
"""


def found(root: Path, sql: str, sink: str = "id INT") -> SpecError | None:
    """What is said of a transform over the sources above."""
    folders = SpecFolders(root)
    folder = folders.add(pipeline=PIPELINE.replace("SINK", sink))
    (folder / "transform.sql").write_text(sql)
    return static_error(folders.project, folders.load())


RIGHT = [
    "SELECT id FROM events",
    "SELECT e.ID AS id FROM EVENTS e",
    "SELECT id FROM events LATERAL VIEW explode(tags) AS tag WHERE tag > 'a'",
    "SELECT e.id FROM events e JOIN places p ON p.any_column = e.name WHERE other > 1",
    "SELECT id FROM places",
    "SELECT id FROM events WHERE who.first = 'a' AND who.anything.at_all IS NULL",
    "SELECT int(key) AS id FROM lines WHERE topic = 'x' AND partition = 1 AND timestamp IS NOT NULL",
    "SELECT id, amount AS a, a * 2 AS b FROM events",
    "SELECT explode(tags) FROM events",
    "SELECT id FROM people WHERE _kafka.topic = 'people'",
    "FROM events |> WHERE nothing = 1 |> DROP name",
    "SELECT * FROM events PIVOT (count(id) FOR name IN ('a', 'b'))",
    "SELECT my_function(id) AS id FROM events WHERE aggregate(tags, 0, (acc, x) -> acc + length(x)) > 1",
    "SELECT max(id) AS id FROM events GROUP BY window(at, '1 hour')",
    "SELECT id FROM events WHERE at > current_timestamp - INTERVAL 1 DAY AND name = current_user",
    "SELECT p.id FROM people p JOIN LATERAL (SELECT max(e.amount) AS m FROM events e WHERE e.id = p.age) x",
    "SELECT id FROM events;",
    "TABLE events",
]


@pytest.mark.parametrize("sql", RIGHT)
def test_what_may_be_right_is_left_alone(tmp_path: Path, sql: str) -> None:
    error = found(tmp_path, sql)
    assert error is None or error.id == "transform.output", error
    if "*" not in sql and "TABLE" not in sql:
        assert error is None or "id, " in sql, error


@pytest.mark.parametrize(
    "table", ["towns", "default.event", "spark_catalog.default.towns", "text.`/etc/hosts`"]
)
def test_a_table_of_the_catalog_is_no_source(tmp_path: Path, table: str) -> None:
    error = found(tmp_path, f"SELECT e.id FROM events e JOIN {table} t ON t.id = e.id")
    assert error is not None
    assert error.id == "transform.unknown-source"
    assert table.replace("`", "") in error.what
    if table == "default.event":
        assert "did you mean 'events'?" in error.what


@pytest.mark.capability("SAFE-01")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM flights" + "".join(f" JOIN flights a{n}" for n in range(30)),
        f"SELECT {'timestamp(' * 30}1{')' * 30}",
        f"SELECT {'struct(' * 30}1 AS a{')' * 30}",
    ],
    ids=["joins", "casts", "structs"],
)
def test_a_text_that_takes_the_parser_too_many_steps_is_left_to_spark(sql: str) -> None:
    """Each level doubles them: without a bound this test would not end."""
    assert parse_query(sql) is None


@pytest.mark.capability("SAFE-01")
def test_columns_that_double_with_every_level_are_left_to_spark() -> None:
    levels = "".join(f", a{n} AS (SELECT *, * FROM a{n - 1})" for n in range(1, 61))
    query = parse_query(f"WITH a0 AS (SELECT * FROM t){levels} SELECT * FROM a60")
    assert query is not None
    assert not Outputs({"t": Relation.of([Column("x", "INT")])}).of_query(query).whole
