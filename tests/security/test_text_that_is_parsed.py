"""Text of users and suppliers that reaches a parser: every place is known, with what stands before it."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import drawdown
from drawdown.spark.session import reading_session
from tests.support.quality import pipeline_with
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.capability("SAFE-02")

EXPRESSION = "id` + no_such_function() + `id"
SPEC = """
sources:
  rows: {{format: {format}, path: landing/rows, infer_schema: true, options: {options}}}
transform: transform.sql
sink: {{format: delta, path: tables/out, schema: "id BIGINT"}}
state: {{partitions: 2}}
"""


@pytest.mark.parametrize("format", ["json", pytest.param("csv", marks=pytest.mark.full)])
def test_the_name_of_a_column_in_a_suppliers_file_is_no_expression(sandbox: Sandbox, format: str) -> None:
    """Spark would look the function up, and a known one it would run."""
    csv = f'id,"{EXPRESSION}"\n1,2\n'
    options = "{header: true}" if format == "csv" else "{}"
    sandbox.pipeline(
        "odd",
        SPEC.format(format=format, options=options),
        transform_sql="SELECT CAST(id AS BIGINT) AS id FROM rows",
    )
    text = csv if format == "csv" else json.dumps({"id": 1, EXPRESSION: 2}) + "\n"
    for number in (1, 2):
        # The second run has the names from the schema that the first one has kept.
        sandbox.land(f"landing/rows/{number}.{format}", text)
        sandbox.run("odd")
    assert sandbox.delta("tables/out") == [(1,), (1,)]


@pytest.mark.parametrize(
    "expression",
    ["reflect('java.lang.System', 'getProperty', 'user.home')", "(SELECT count(*) FROM text.`/etc/hosts`)"],
)
def test_a_batch_that_is_read_again_is_read_in_a_confined_session(
    spark: SparkSession, expression: str
) -> None:
    """Its plan has the rules of quality.yaml in it."""
    with pytest.raises(AnalysisException):
        reading_session(spark, pipeline_with("rules: []\n")).range(1).selectExpr(expression)
    spark.range(1).selectExpr(expression)


ROOT = Path(drawdown.__file__).parent
PARSES = frozenset({
    "call_function", "compile", "eval", "exec", "exec_driver_sql", "expr", "fromDDL", "from_avro", "from_csv",
    "from_json", "from_protobuf", "from_xml", "parseDataType", "parseExpression", "parsePlan",
    "parseTableSchema", "schema_of_csv", "schema_of_json", "schema_of_xml", "selectExpr", "sql", "table",
    "text", "withWatermark",
})  # fmt: skip
"""Calls that hand a text to a parser: of Spark, of databases, of Python."""
MAY_PARSE = frozenset({"createDataFrame", "filter", "schema", "where"})
"""Calls that take a text or something else."""

OWN = "a text of the library"
AVRO = "a schema of Avro, which names nothing to fetch"
NAME = "a name of a pattern that no quote is in (values/model.py), or of the library"
SCHEMA = "a schema that Spark has made of DDL; names are quoted (spark/named_columns.py)"
DDL = "DDL: Spark's rule for a list of columns has no expressions, and values/ddl.py reads it before"
ROW = "asks_a_query, for all conditions of a pipeline before anything is read (query/conditions.py)"
USERS_CODE = "a program of the user"

SITES = {
    "airflow/remote/dataproc_tasks.py: filter(order.is_of_an_earlier_try, clusters_of(se": "Python's own",
    "cli/doctor/airflow_pools.py: text(query)": OWN,
    "delta/table.py: from_json(schema_json)": "delta-rs reads JSON of a schema that Spark wrote",
    "delta/table.py: from_json(text)": "delta-rs reads JSON of a column that Spark wrote",
    "delta/table.py: execute(f'SELECT {names} FROM rows')": "quoted names of columns that the table has",
    "delta/table.py: predicate=_within(column, schema.field(column).type, interval)": NAME,
    "drain/uncounted_watch.py: table(self.pipeline.name)": NAME,
    "jvm/own_jar.py: compile(_files(gateway, _sources()))": OWN,
    "quality/one_pass.py: expr(condition)": "asks_a_query, the line before",
    "quality/one_pass.py: filter(self._combine_row_conditions(conditions).condition)": "_Filters.filter asks",
    "quarantine/spark_restored_columns.py: expr(self.patch[field.name])": "parse_patch: asks_a_query",
    "quarantine/spark_restored_columns.py: from_csv('payload', ddl_of(full), parsing)": SCHEMA,
    "quarantine/spark_restored_columns.py: from_json('parsed', self.schema)": SCHEMA,
    "quarantine/spark_restored_columns.py: from_json('payload', full, parsing)": SCHEMA,
    "quarantine/spark_restored_columns.py: from_json(text, with_corrupt(self.schema), {'columnN": SCHEMA,
    "query/carriers.py: schema(f'{_TIME} TIMESTAMP')": OWN,
    "query/carriers.py: where(f'not ({_FLAG} and `{column}` is not null)": NAME,
    "query/carriers.py: withWatermark(column, delay)": NAME,
    "query/conditions.py: where(each.sql)": ROW,
    "query/conditions.py: where(rule.check)": ROW,
    "query/state/state_variables.py: fromDDL(schema)": USERS_CODE,
    "recovery/spark_state_reader.py: from_json(F.lit(json.dumps(given)), kind)": SCHEMA,
    "replay/spark_arrivals.py: createDataFrame(rows, f'{schema}, {ARRIVAL}_ BIGINT')": OWN,
    "replay/spark_decided_rows.py: from_json(F.to_json(row, dict(EXACT_TIMES)), common,": SCHEMA,
    "rows/row_fates.py: expr(rule.check)": ROW,
    "sinks/test/stage_memory.py: table(f'global_temp.{pipeline.name}')": NAME,
    "sources/delta/reader.py: table(known_table(session, project, pipeline, name))": NAME,
    "sources/kafka/spark_values.py: from_avro(F.col('value'), json.dumps(written), parsing)": AVRO,
    "sources/kafka/spark_values.py: from_csv(text, ddl_of(full), parsing)": SCHEMA,
    "sources/kafka/spark_values.py: from_json(text, full, bounded)": SCHEMA,
    "sources/reader.py: table(known_table(session, project, pipeline, name))": NAME,
    "sources/spark_system_columns.py: expr(corrupt or null)": OWN,
    "sources/spark_system_columns.py: expr(null)": OWN,
    "sources/spark_system_columns.py: expr(origin)": OWN,
    "spark/confined_query.py: parsePlan(text)": "it is the gate",
    "spark/confined_query.py: sql(text)": "the gate, two lines before",
    "spark/declared_schema.py: fromDDL(ddl)": DDL,
    "spark/sql_gate.py: parseExpression(expression)": "it is the gate",
    "spark/sql_gate.py: parsePlan(text)": "it is the gate",
    "spark/sql_checks.py: parseExpression(text)": "it is the gate",
    "spark/sql_checks.py: parsePlan(text)": "it is the gate",
    'spark/tables.py: sql(f"CREATE TABLE IF NOT EXISTS `{name}` USIN': NAME,
    "spark/tables.py: sql(f'DESCRIBE DETAIL `{name}`')": NAME,
    "testing/cases/case_rows.py: from_json(column, kind.simpleString())": SCHEMA,
}
"""Every call, with what stands before it. A new one is added here with its gate, or does not go in."""


def sites() -> Iterator[str]:
    """Every call that hands a text to a parser, but for literals, and the metastore's own (SQLAlchemy)."""
    for file in (file for file in sorted(ROOT.rglob("*.py")) if ROOT / "metastore" not in file.parents):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and node.args and _parses(node):
                arguments = ", ".join(map(ast.unparse, node.args))
                closed = f"{arguments})" if len(arguments) < 60 else arguments[:42]
                yield f"{file.relative_to(ROOT)}: {ast.unparse(node.func).rpartition('.')[2]}({closed}"
            if isinstance(node, ast.keyword) and node.arg == "predicate":
                yield f"{file.relative_to(ROOT)}: predicate={ast.unparse(node.value)}"


def _parses(call: ast.Call) -> bool:
    called = ast.unparse(call.func)
    name = called.rpartition(".")[2]
    if called in ("re.compile", "pa.table", "document.where"):
        return False
    if all(isinstance(argument, ast.Constant) for argument in call.args):
        return False
    if name == "execute":
        return any(isinstance(argument, ast.JoinedStr) for argument in call.args)
    if name in MAY_PARSE:
        # A condition that is put together from columns is a call, a comparison or an operation.
        texts = [argument for argument in call.args if isinstance(argument, ast.JoinedStr)]
        return bool(texts) or (name in ("filter", "where") and isinstance(call.args[0], ast.Attribute))
    return name in PARSES


def test_each_text_that_is_parsed_has_passed_a_gate() -> None:
    assert sorted(Counter(sites())) == sorted(SITES), "add it to SITES, with what stands before it"
