"""transform.sql and what validate finds in it without Spark: the mistake, its line, and the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.static_checks.check import static_error
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
    return static_error(folders.project, folders.load(), frozenset())


MISTAKES = [
    # What is no SQL
    ("SELCT id FROM events", 1, "transform.not-sql", "it begins with `SELCT`"),
    ("SELECT id,\nFROM events", 1, "transform.not-sql", "a comma stands before `FROM`"),
    ("SELECT id\nFROM events\nWHERE (id > 1", 3, "transform.not-sql", "a `(` is not closed"),
    ("SELECT count(*)) AS id FROM events", 1, "transform.not-sql", "a `)` closes nothing"),
    ("SELECT id FROM events\nWHERE name = 'a", 2, "transform.not-sql", "a quote or a comment is not closed"),
    ("SELECT id FROM events\nWHERE id =", 2, "transform.not-sql", "`=` stands before the end"),
    ("SELECT id,, name FROM events", 1, "transform.not-sql", "a comma stands before `,`"),
    ("SELECT id FROM events\nWHER name = 'a'", 2, "transform.not-sql", "it is no SQL from `name` on"),
    ("SELECT id FORM events", 1, "transform.not-sql", "it is no SQL from `events` on"),
    ("SELECT id\nFROM events\nGROUP id", 3, "transform.not-sql", "it is no SQL from `id` on"),
    ("SELECT id FROM events\nWHERE id > 1 AND", 2, "transform.not-sql", "`AND`"),
    ("SELECT id FROM events;\nSELECT 2 AS id", 2, "transform.not-sql", "2 statements"),
    ("INSERT INTO out SELECT id FROM events", 1, "transform.not-sql", "it is INSERT, not a query"),
    ("-- nothing yet\n", 1, "transform.not-sql", "it holds no query"),
    # Tables
    ("SELECT id\nFROM event", 2, "transform.unknown-source", "did you mean 'events'?"),
    ("SELECT e.id FROM events e\nJOIN peple p ON p.id = e.id", 2, "transform.unknown-source", "'people'"),
    ("WITH c AS (SELECT id FROM events)\nSELECT id FROM d", 2, "transform.unknown-source", "d"),
    # Columns
    ("SELECT\n  idd AS id\nFROM events", 2, "transform.unknown-column", "did you mean 'id'?"),
    ("SELECT id FROM events\nWHERE amout > 1", 2, "transform.unknown-column", "'amount'"),
    ("SELECT id FROM events ORDER BY nam", 1, "transform.unknown-column", "'name'"),
    ("SELECT id FROM events GROUP BY id\nHAVING max(amunt) > 1", 2, "transform.unknown-column", "'amount'"),
    ("SELECT e.id FROM events e JOIN people p\nON p.idd = e.id", 2, "transform.unknown-column", "'id'"),
    ("SELECT p.agee AS id FROM people p", 1, "transform.unknown-column", "'age'"),
    ("SELECT x.id FROM events e", 1, "transform.unknown-column", "x.id"),
    (
        "SELECT count(*) AS id FROM events\nGROUP BY window(att, '1 hour')",
        2,
        "transform.unknown-column",
        "'at'",
    ),
    ("WITH c AS (SELECT idd AS id FROM events)\nSELECT id FROM c", 1, "transform.unknown-column", "idd"),
    ("WITH c AS (SELECT id FROM events)\nSELECT name AS id FROM c", 2, "transform.unknown-column", "name"),
    ("SELECT id FROM (SELECT id, amuont AS a FROM events)", 1, "transform.unknown-column", "'amount'"),
    ("SELECT id FROM events WHERE id IN (\n  SELECT pid FROM people)", 2, "transform.unknown-column", "pid"),
    ("SELECT s.id FROM (SELECT id FROM events) s\nWHERE s.n > 1", 2, "transform.unknown-column", "s.n"),
    ("SELECT id FROM events UNION ALL\nSELECT idd FROM people", 2, "transform.unknown-column", "'id'"),
    ("SELECT CASE WHEN amnt > 1 THEN id END AS id FROM events", 1, "transform.unknown-column", "'amount'"),
    ("SELECT id FROM events LATERAL VIEW explode(tagss) t AS tag", 1, "transform.unknown-column", "'tags'"),
    (
        "SELECT id, row_number() OVER (\n  ORDER BY att) AS n FROM events",
        2,
        "transform.unknown-column",
        "'at'",
    ),
    ("SELECT valu AS id FROM lines", 1, "transform.unknown-column", "'value'"),
    ("SELECT whoo.first AS id FROM events", 1, "transform.unknown-column", "whoo.first"),
    ("SELECT cast(idd AS INT) AS id FROM events", 1, "transform.unknown-column", "idd"),
    ("SELECT id FROM events WHERE exists(tagss, t -> t = 'a')", 1, "transform.unknown-column", "'tags'"),
    # The output
    ("SELECT id, name FROM events", 1, "transform.output", "name is not in the schema"),
    ("SELECT name FROM events", 1, "transform.output", "id is missing"),
    ("SELECT id AS di FROM events", 1, "transform.output", "di is not in the schema"),
    ("SELECT *\nFROM people", 1, "transform.output", "age is not in the schema"),
    ("SELECT name AS id FROM events", 1, "transform.output", "id is STRING and not INT"),
    ("SELECT count(*) AS id FROM events", 1, "transform.output", "id is BIGINT and not INT"),
    ("SELECT\n  cast(id AS STRING) AS id\nFROM events", 2, "transform.output", "id is STRING and not INT"),
    ("SELECT at AS id FROM events", 1, "transform.output", "id is TIMESTAMP and not INT"),
    (
        "SELECT window.start AS id FROM events GROUP BY window(at, '1 hour')",
        1,
        "transform.output",
        "id is TIMESTAMP and not INT",
    ),
    ("SELECT avg(amount) AS id FROM events GROUP BY name", 1, "transform.output", "id is DOUBLE and not INT"),
    ("SELECT ID FROM events", 1, "transform.output", "id is missing (did you mean 'ID'?)"),
]


@pytest.mark.parametrize(("sql", "line", "id", "said"), MISTAKES)
def test_a_mistake_is_said_with_its_line(tmp_path: Path, sql: str, line: int, id: str, said: str) -> None:
    error = found(tmp_path, sql)
    assert error is not None, "nothing was found"
    assert (error.id, error.where) == (id, f"include/pipelines/hourly/transform.sql:{line}")
    assert said in str(error)
    assert "_dd_" not in str(error)


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


def test_a_table_that_another_pipeline_names_may_be_in_the_catalog(tmp_path: Path) -> None:
    folders = SpecFolders(tmp_path)
    folder = folders.add(pipeline=PIPELINE.replace("SINK", "id INT"))
    (folder / "transform.sql").write_text("SELECT e.id FROM events e JOIN towns t ON t.id = e.id")
    pipeline = folders.load()
    assert static_error(folders.project, pipeline, frozenset({"towns"})) is None
    error = static_error(folders.project, pipeline, frozenset())
    assert error is not None
    assert error.id == "transform.unknown-source"
