"""SQL in a pipeline's folder computes over its sources; it calls no Java, opens no file, runs no command."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import SpecError, TransformError
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: "id INT, name STRING"}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
"""


def _pipeline(sandbox: Sandbox, sql: str, check: str = "id > 0") -> None:
    rules = f'rules: [{{name: odd, check: "{check}", on_fail: warn}}]\n'
    sandbox.pipeline("confined", SPEC, transform_sql=sql, quality_yaml=rules, out_ddl="id INT, name STRING")
    sandbox.land_json("landing/events/1.json", [{"id": 1, "name": "one"}])


@pytest.mark.parametrize(
    "expression",
    [
        "reflect('java.lang.System', 'getProperty', 'user.home')",
        "java_method('java.lang.System', 'getProperty', 'user.home')",
        "try_reflect('java.lang.System', 'getProperty', 'user.home')",
        "system.builtin.reflect('java.lang.System', 'getProperty', 'user.home')",
    ],
)
def test_no_expression_calls_java(sandbox: Sandbox, expression: str) -> None:
    _pipeline(sandbox, f"SELECT id, {expression} AS name FROM events")
    refused(sandbox, "confined", "sql.function", TransformError)
    _pipeline(sandbox, "SELECT * FROM events", check=f"{expression} IS NULL")
    refused(sandbox, "confined", "sql.function", TransformError)


@pytest.mark.parametrize("format", ["text", "json", "binaryFile", "delta"])
def test_no_file_is_read_by_its_name(sandbox: Sandbox, format: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    file = f"{format}.`{tmp_path / 'secret'}`"
    _pipeline(sandbox, f"SELECT e.* FROM events AS e JOIN (SELECT * FROM {file}) ON true")
    error = refused(sandbox, "confined", "transform.unknown-source", SpecError)
    assert "secret" not in error.what.replace(str(tmp_path / "secret"), "")


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("DROP TABLE events", "DropTable"),
        ("SET spark.sql.shuffle.partitions = 1", "SetCommand"),
        ("ADD JAR '/tmp/x.jar'", "AddJarsCommand"),
        ("CREATE TABLE stolen USING delta LOCATION '/tmp/stolen' AS SELECT 1", "CreateTableAsSelect"),
        ("WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c", "InsertIntoStatement"),
        ("INSERT OVERWRITE DIRECTORY '/tmp/stolen' USING csv SELECT * FROM events", "InsertIntoDir"),
        ("EXECUTE IMMEDIATE 'DROP TABLE events'", "UnresolvedExecuteImmediate"),
        ("CALL system.anything()", "Call"),
        ("BEGIN SELECT 1; END", "CompoundBody"),
        ("SELECT TRANSFORM(id, name) USING 'cat' AS (id, name) FROM events", "ScriptTransformation"),
        ("WITH c AS (SELECT TRANSFORM(id) USING 'cat' FROM events) SELECT * FROM c", "ScriptTransformation"),
        ("SELECT id, (SELECT TRANSFORM(1) USING 'cat') AS name FROM events", "ScriptTransformation"),
    ],
)
def test_a_transform_is_one_query(sandbox: Sandbox, sql: str, kind: str) -> None:
    _pipeline(sandbox, sql)
    error = refused(sandbox, "confined", "transform.command", TransformError)
    assert kind in error.what


def test_a_transform_names_no_variable_of_the_driver(sandbox: Sandbox) -> None:
    with pytest.raises(SpecError, match=r"spec\.sql-variable") as caught:
        _pipeline(sandbox, "SELECT id,\n  '${env:HOME}' AS name FROM events")
    assert caught.value.where.endswith("transform.sql:2")


def test_a_rule_asks_no_query(sandbox: Sandbox) -> None:
    _pipeline(sandbox, "SELECT * FROM events", check="id IN (SELECT id FROM events)")
    error = refused(sandbox, "confined", "rule.subquery", TransformError)
    assert "odd" in error.what


def test_what_computes_is_as_it_was(sandbox: Sandbox) -> None:
    _pipeline(sandbox, "FROM events |> WHERE id = 1 |> SELECT id, upper(name) AS name")
    sandbox.run("confined")
    assert sandbox.delta("tables/out") == [(1, "ONE")]
