"""What SQL of a pipeline may call: every function of the real registries is on a list, in every place.

Each text is read by Spark's own parser. The attacks that once read files and called servers run for real:
against a file with a secret, and a server that must see no request.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from drawdown.errors import DrawdownError, SpecError, TransformError
from drawdown.quality import gx_import
from drawdown.quarantine.spark_restored_columns import parse_patch
from drawdown.query.conditions import refuse_wide_conditions
from drawdown.query.slice_queries import prepare_queries
from drawdown.query.transforms import run_transform
from drawdown.spark import sql_checks
from drawdown.spark.gateway import jvm_of
from drawdown.spark.session import query_session
from drawdown.spark.sql_checks import refused_in_condition, refused_in_query
from drawdown.spark.sql_functions import sql_functions
from drawdown.spec import Pipeline
from drawdown.static_checks.check import static_error
from tests.engine.test_read_without_spark import examples_of
from tests.engine.test_sql_corpus import HARMLESS, HARMLESS_CONDITIONS
from tests.support.avro import doubling
from tests.support.quality import pipeline_with
from tests.support.refusals import planned, refused
from tests.support.sandbox import Sandbox

KNOWN = sql_functions()
REACHING = sorted(name for name, kind in KNOWN.scalar.items() if kind == "reaches-out")
REACHING_TABLES = sorted(name for name, kind in KNOWN.tables.items() if kind == "reaches-out")
SECRET = "the password of the administrator"

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: "id INT, name STRING"}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
"""


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return query_session(spark, pipeline_with("rules: []"))


def _registered(registry: object) -> set[str]:
    found = registry.listFunction().mkString("\n").split("\n")  # type: ignore[attr-defined]
    return {str(name).removeprefix("system.builtin.") for name in found}


@pytest.mark.capability("SAFE-01")
def test_every_function_of_the_registries_is_sorted(spark: SparkSession) -> None:
    state = spark.newSession()._jsparkSession.sessionState()
    assert _registered(state.functionRegistry()) == set(KNOWN.scalar)
    assert _registered(state.tableFunctionRegistry()) == set(KNOWN.tables)


def _refusals(
    session: SparkSession, expression: str, table: bool = False
) -> Iterator[tuple[str, DrawdownError]]:
    """What each place where a spec holds SQL says to an expression."""
    query = f"SELECT * FROM {expression}" if table else f"SELECT {expression} AS x FROM slice"
    quoted = query.replace('"', '\\"')
    yield (
        "query",
        _raised(
            lambda: prepare_queries(
                session,
                pipeline_with(f'queries: [{{name: odd, unexpected: "{quoted}"}}]'),
                StructType.fromDDL("id INT, name STRING"),
                {},
            )
        ),
    )
    if table:
        return
    condition = f"{expression} IS NOT NULL"
    quoted = condition.replace('"', '\\"')
    rule = pipeline_with(f'rules: [{{name: odd, check: "{quoted}", on_fail: warn}}]')
    yield "rule", _raised(lambda: refuse_wide_conditions(session, rule))
    kwargs = f'{{column: flight, row_condition: "{quoted}", condition_parser: spark}}'
    expectation = pipeline_with(
        f"expectations: [{{type: expect_column_values_to_not_be_null, kwargs: {kwargs}}}]"
    )
    yield "expectation", _raised(lambda: refuse_wide_conditions(session, expectation))
    yield "patch", _raised(lambda: parse_patch(session, [f"name = {expression}"]))


def _raised(call: object) -> DrawdownError:
    with pytest.raises(DrawdownError) as caught:
        call()  # type: ignore[operator]
    return caught.value


@pytest.mark.capability("SAFE-01")
@pytest.mark.parametrize("name", REACHING)
def test_what_reaches_out_is_refused_by_its_name_wherever_it_stands(session: SparkSession, name: str) -> None:
    for spelt in (name, f"system.builtin.{name.upper()}", f"`{name}`"):
        assert refused_in_query(session, f"SELECT {spelt}(name) FROM events") is not None
        assert refused_in_condition(session, f"upper({spelt}(name)) = 'A'") is not None
    for place, error in _refusals(session, f"{name}(name, 'a')"):
        assert error.id == ("quarantine.patch" if place == "patch" else "sql.function")
        assert f" {name}, which {KNOWN.why[name]}" in error.what
        assert error.do


@pytest.mark.capability("SAFE-01")
@pytest.mark.parametrize("name", REACHING_TABLES)
def test_so_is_what_makes_tables(session: SparkSession, name: str) -> None:
    for _, error in _refusals(session, f"{name}('a', 1)", table=True):
        assert error.id == "sql.function"
        assert name in error.what


@pytest.mark.capability("SAFE-01")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(id) OVER w FROM events WINDOW w AS (ORDER BY {call})",
        "SELECT transform(array(1), x -> {call}) FROM events",
        "SELECT id FROM events GROUP BY id HAVING max({call}) IS NULL",
        "SELECT * FROM events PIVOT (max({call}) FOR name IN ('a'))",
        "SELECT * FROM events LATERAL VIEW explode(array({call})) AS y",
        "SELECT * FROM events, LATERAL (SELECT {call})",
        "SELECT * FROM range({call})",
        "SELECT count(*) FILTER (WHERE {call} IS NULL) FROM events",
        "WITH c AS (SELECT {call}) SELECT * FROM c",
        "FROM events |> EXTEND {call} AS x",
        "VALUES ({call})",
        "SELECT * FROM events ORDER BY {call} LIMIT 1",
        "SELECT {call} COLLATE UTF8_LCASE FROM events",
        "SELECT schema_of_json({call}) FROM events",
    ],
)
def test_a_call_is_seen_in_every_part_of_a_query(session: SparkSession, text: str) -> None:
    found = refused_in_query(session, text.replace("{call}", "xpath_string(name, 'a')"))
    assert found is not None
    assert found.id == "sql.function"


@pytest.mark.capability("SAFE-01")
def test_a_function_that_nobody_has_sorted_is_refused(session: SparkSession) -> None:
    session.udf.register("of_tomorrow", lambda: "x")
    assert session.sql("SELECT of_tomorrow() AS x").columns == ["x"], "Spark knows it"
    for place, error in _refusals(session, "of_tomorrow()"):
        assert error.id == ("quarantine.patch" if place == "patch" else "sql.function")
        assert "of_tomorrow, which is not on the list" in error.what
    for name in ("spark_catalog.default.upper", "mine.upper", "session.upper", "`system.builtin.upper`"):
        assert refused_in_query(session, f"SELECT {name}('a')") is not None, name
    near = refused_in_query(session, "SELECT uper('a')")
    assert near is not None
    assert near.do.startswith("did you mean 'upper'?")


@pytest.mark.capability("SAFE-01")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'getenv', 'HOME')",
        "SELECT IDENTIFIER('id') FROM events",
        "SELECT :name",
        "SELECT ?",
        "SELECT * FROM events LIMIT :n",
    ],
)
def test_names_and_values_are_written_out(session: SparkSession, text: str) -> None:
    found = refused_in_query(session, text)
    assert found is not None
    assert found.id == "sql.syntax"


@pytest.mark.capability("SAFE-01")
def test_what_computes_passes(session: SparkSession) -> None:
    for text in HARMLESS:
        assert refused_in_query(session, text) is None, text
    for text in HARMLESS_CONDITIONS:
        assert refused_in_condition(session, text) is None, text
    for name in KNOWN.allowed:
        if name[0].isalpha():
            given = "'id'" if name in KNOWN.schemas and KNOWN.schemas[name].at == 0 else "id"
            assert refused_in_condition(session, f"`{name}`({given})") is None, name


@pytest.mark.full
@pytest.mark.capability("SAFE-01")
def test_sparks_own_examples_pass(session: SparkSession) -> None:
    """All but those of what reaches out, of options and arguments that are not written out."""
    refused_ones = {}
    for (name,) in session.sql("SHOW FUNCTIONS").collect():
        for example in examples_of(session, name) if KNOWN.scalar.get(name) != "reaches-out" else ():
            try:
                found = refused_in_query(session, example)
            except PySparkException:
                continue
            if found is not None and name in KNOWN.scalar:
                refused_ones[example] = found
    assert {each.id for each in refused_ones.values()} <= {"sql.function"}
    assert all("by its name (=>)" in each.what for each in refused_ones.values()), refused_ones


def test_the_classes_compile_on_a_driver_without_the_jar(spark: SparkSession) -> None:
    jvm = jvm_of(spark)
    for name in ("ParsedSql", "GuardedFunctions"):
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(Path(sql_checks.__file__).with_name(f"{name}.java").read_text())


_DEEP = {
    "parentheses": "(" * 3000 + "1" + ")" * 3000,
    "NOT": "!" * 9000 + "true",
    "calls": "abs(" * 1900 + "1" + ")" * 1900,
}


@pytest.mark.capability("SAFE-01")
@pytest.mark.parametrize("text", _DEEP.values(), ids=list(_DEEP))
def test_a_failure_of_java_is_a_sentence_in_every_place(session: SparkSession, text: str) -> None:
    for place, error in _refusals(session, f"({text})"):
        assert error.id == {"query": "query.refused", "patch": "quarantine.patch"}.get(
            place, f"{place}.refused"
        )
        assert "it nests too deep" in error.what or "TOO_COMPLEX" in error.what, error.what
        assert "\tat " not in str(error)
    assert session.sql("SELECT 1").collect() == [(1,)]


class _Server(BaseHTTPRequestHandler):
    """Answers each request with a schema and notes its path."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = b'"string"'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    handler = type("Handler", (_Server,), {"asked": asked})
    running = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}", asked
    finally:
        running.shutdown()
        running.server_close()
        thread.join()


def _attacks(folder: Path, address: str) -> list[str]:
    secret = folder / "passwords.json"
    secret.write_text(f'{{"admin": "{SECRET}"}}')
    xsd = folder / "rows.xsd"
    xsd.write_text(f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret.as_uri()}">]><x>&e;</x>')
    document = f'<!DOCTYPE a SYSTEM "{address}/a.dtd"><a>1</a>'
    return [
        f"schema_of_avro('\"string\"', map('avroSchemaUrl', '{secret.as_uri()}'))",
        f"schema_of_avro('\"string\"', map('avroSchemaUrl', '{address}/schema'))",
        f"from_avro(cast(name AS BINARY), '\"string\"', map('avroSchemaUrl', '{address}/schema'))",
        f"from_xml('<a>1</a>', 'a INT', map('rowValidationXSDPath', '{xsd}')).a",
        f"xpath_string('{document}', 'a')",
        f"from_protobuf(cast(name AS BINARY), 'Message', '{secret}').a",
        _evaluated(f"schema_of_avro('x', map('avroSchemaUrl', '{secret.as_uri()}'))"),
        _evaluated(f"schema_of_avro('x', map('avroSchemaUrl', '{address}/schema'))"),
    ]


def _evaluated(expression: str, call: str = "from_json('{}', {}).a") -> str:
    """A call whose schema is JSON, in which Spark evaluates an expression with its own functions."""
    column = '{"name":"a","type":"string","nullable":true,"metadata":{"EXISTS_DEFAULT":"%s"}}'
    schema = '{"type":"struct","fields":[' + column % expression.replace("'", "''") + "]}"
    return call.replace("{}).a", f"'{schema}').a")


@pytest.mark.capability("SAFE-01", "SAFE-02")
def test_no_place_reads_a_file_or_calls_a_server(
    spark: SparkSession, session: SparkSession, tmp_path: Path, server: tuple[str, list[str]]
) -> None:
    address, asked = server
    plain = spark.newSession()
    plain.sql(f"SELECT schema_of_avro('\"string\"', map('avroSchemaUrl', '{address}/plain'))").collect()
    with pytest.raises(Py4JJavaError, match=SECRET):
        plain.sql(_selected(_attacks(tmp_path, address)[0])).collect()
    assert asked == ["/plain"], "in a session of our own they do"
    for attack in _attacks(tmp_path, address):
        for place, error in _refusals(session, attack):
            assert error.id in ("sql.function", "sql.option", "sql.schema", "quarantine.patch"), place
            assert SECRET not in str(error)
    assert asked == ["/plain"]


def _selected(expression: str) -> str:
    return f"SELECT {expression} AS x FROM VALUES ('a') AS t(name)"


@pytest.mark.capability("SAFE-01")
def test_xml_without_options_opens_nothing(
    session: SparkSession, tmp_path: Path, server: tuple[str, list[str]]
) -> None:
    address, asked = server
    (tmp_path / "secret").write_text(SECRET)
    inner = f'[<!ENTITY e SYSTEM "{(tmp_path / "secret").as_uri()}"> <!ENTITY h SYSTEM "{address}/e">]'
    document = f'<!DOCTYPE a SYSTEM "{address}/a.dtd" {inner}><a><b>&e;&h;</b></a>'
    shown = ""
    for call in (
        "from_xml(x, 'b STRING')",
        "schema_of_xml(x)",
        "from_xml(x, 'b STRING', map('mode', 'FAILFAST'))",
    ):
        text = f"SELECT {call} FROM VALUES ('{document}') AS t(x)".replace(
            "schema_of_xml(x)", f"schema_of_xml('{document}')"
        )
        assert refused_in_query(session, text) is None
        try:
            shown += str(session.sql(text).collect())
        except (PySparkException, Py4JJavaError) as cause:
            shown += str(cause)
    assert SECRET not in shown
    assert asked == []


@pytest.mark.capability("SAFE-01")
def test_a_transform_that_reaches_out_touches_nothing(
    sandbox: Sandbox, tmp_path: Path, server: tuple[str, list[str]]
) -> None:
    address, asked = server
    attack = _attacks(tmp_path, address)[1]
    sandbox.pipeline(
        "safe", SPEC, transform_sql=f"SELECT id, {attack} AS name FROM events", out_ddl="id INT, name STRING"
    )
    sandbox.land_json("landing/events/1.json", [{"id": 1, "name": "one"}])
    error = refused(sandbox, "safe", "sql.option", TransformError)
    assert "the option avroSchemaUrl" in error.what
    sandbox.pipeline(
        "safe",
        SPEC,
        transform_sql="SELECT id,\n  xpath_string(name, 'a') AS name\nFROM events",
        out_ddl="id INT, name STRING",
    )
    refused(sandbox, "safe", "sql.function", TransformError)
    found = static_error(sandbox.project, _loaded(sandbox))
    assert isinstance(found, SpecError)
    assert (found.id, found.where.endswith("transform.sql:2")) == ("sql.reaches-out", True)
    assert asked == []


@pytest.mark.capability("SAFE-01")
def test_a_constant_that_a_function_cannot_read_is_a_sentence(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "safe",
        SPEC,
        transform_sql="SELECT id, schema_of_avro('hunter2 x') AS name FROM events",
        out_ddl="id INT, name STRING",
    )
    sandbox.land_json("landing/events/1.json", [{"id": 1, "name": "one"}])
    errors = [*planned(sandbox, "safe").errors, sandbox.drain("safe")[0].error]
    for error in errors:
        assert isinstance(error, DrawdownError)
        assert "\tat " not in str(error)
        assert "Exception" not in str(error)


def _loaded(sandbox: Sandbox) -> Pipeline:
    from drawdown.spec import load_pipeline

    return load_pipeline(sandbox.project, "safe")


@pytest.mark.capability("SAFE-01")
@pytest.mark.parametrize(
    "quality",
    [
        "rules: [{name: odd, check: \"xpath_int(origin, 'a') > 1\", on_fail: warn}]",
        "queries: [{name: odd, unexpected: \"SELECT `xpath_int` (origin, 'a') FROM slice\"}]",
        "expectations: [{type: expect_column_values_to_not_be_null, kwargs: {column: origin,"
        " row_condition: \"xpath_int(origin, 'a') > 1\", condition_parser: spark}}]",
        "queries: [{name: odd, unexpected: \"SELECT * FROM table_changes('t', 1)\"}]",
    ],
)
def test_validate_names_it_without_spark(quality: str) -> None:
    from drawdown.static_checks.places import Places
    from drawdown.static_checks.quality import check_queries, check_row_conditions, check_rules
    from drawdown.static_checks.relation import UNKNOWN

    pipeline = pipeline_with(quality)
    places = Places(pipeline)
    found = [
        *check_rules(pipeline, {"flights": UNKNOWN}, places),
        *check_row_conditions(pipeline, UNKNOWN, places),
        *check_queries(pipeline, {"flights": UNKNOWN}, UNKNOWN, places),
    ]
    assert "sql.reaches-out" in {each.id for each in found}


def test_great_expectations_gets_no_such_condition(spark: SparkSession) -> None:
    gx_import.load()
    from great_expectations.exceptions.exceptions import GreatExpectationsError

    from drawdown.quality.one_pass import OnePassEngine

    frame = spark.range(3).toDF("id")
    structure = {"type": "pass_through", "pass_through_filter": "xpath_int('<a/>', 'a') > 1"}
    with pytest.raises(GreatExpectationsError, match="calls xpath_int"):
        OnePassEngine(frame, 3)._apply_row_condition_filter(frame, structure, {})


@pytest.mark.capability("SAFE-02")
@pytest.mark.parametrize("name", sorted(KNOWN.options))
def test_options_are_written_out_and_listed(session: SparkSession, name: str) -> None:
    known = KNOWN.options[name]
    before = ["name", "'a INT'"][: known.at]
    for given, id in (
        ("map('notListed', 'x')", "sql.option"),
        ("map(name, 'x')", "sql.option"),
        ("map('mode', name)", "sql.option"),
        (f"map('mode', '{'x' * 1001}')", "sql.size" if "mode" in known.keys else "sql.option"),
        ("map_from_arrays(array('mode'), array('x'))", "sql.option"),
        ("name", "sql.option"),
    ):
        found = refused_in_query(session, f"SELECT {name}({', '.join([*before, given])}) FROM events")
        assert found is not None, given
        assert found.id == id
    for key in known.keys:
        options = f"map('{key.upper()}', 'x')"
        call = f"{name}({', '.join([*before, options])})"
        assert refused_in_condition(session, call) is None, call


_JSON_TYPE = """{"type":"struct","fields":[]}"""


@pytest.mark.capability("SAFE-01")
@pytest.mark.parametrize("name", sorted(KNOWN.schemas))
def test_a_schema_is_a_literal_that_spark_evaluates_nothing_in(session: SparkSession, name: str) -> None:
    known = KNOWN.schemas[name]
    before = ["name", "'$'"][: known.at]
    deep = "array<" * 101 + "int" + ">" * 101
    bad = ["name", "concat('a ', 'INT')", "'a INT' COLLATE UTF8_LCASE", "NULL", "X'7B7D'", "a => 'a INT'"]
    bad += [f"'{deep}'", f"'a{'a' * 100_000} INT'", "schema_of_json(name)", f"schema_of_json('{'[' * 101}')"]
    if known.form == "avro":
        bad += [f"'{doubling(60)}'"]
        assert refused_in_condition(session, f"{name}({', '.join([*before, f'{doubling(5)!r}'])})") is None
    good = ["'a INT'"]
    if known.form == "ddl":
        bad += [f"{space}'{_JSON_TYPE}'" for space in ("", "r")]
        bad += [
            f"'{start}{_JSON_TYPE}'" for start in (" ", "\\n", "\\t", "\\u0000", "/**/", "\\ufeff", "\\u00a0")
        ]
        bad += ["'\\u007b}'", "'\"string\"'", "''", "schema_of_avro('\"string\"')", "schema_of_json()"]
        bad += [f"schema_of_xml('{'<a>' * 101}')", f"schema_of_xml('{'<a><b/>' * 101}')"]
        good += ["' `a b` INT'", "'array<int>'", "schema_of_json('{\"a\": 1}')", "schema_of_csv('1,2')"]
        good += [f"schema_of_xml('<a>{'<b>1</b><c/>' * 200}</a>')"]
    else:
        good += [f"'{_JSON_TYPE}'"]
    by_name = "sql.option" if name in KNOWN.options else "sql.function"
    for each in bad:
        found = refused_in_query(session, f"SELECT {name}({', '.join([*before, each])}) FROM events")
        assert found is not None, each
        assert found.id == (by_name if "=>" in each else "sql.schema"), each
        assert found.do
    for each in good:
        call = f"builtin.{name}({', '.join([*before, each])})"
        assert refused_in_condition(session, call) is None, call


@pytest.mark.capability("SAFE-01")
@pytest.mark.parametrize("option", ["DEFAULT 1", "GENERATED ALWAYS AS (1)", "DEFAULT schema_of_avro('1')"])
def test_ddl_of_a_function_holds_no_expression(session: SparkSession, option: str) -> None:
    call = f"from_json('{{}}', \"a STRING {option}\").a"
    assert refused_in_condition(session, call) is None
    with pytest.raises(PySparkException):
        session.sql(f"SELECT {call}")


@pytest.mark.capability("SAFE-02")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT /*+ REPARTITION(100000) */ * FROM events",
        "SELECT /*+ COALESCE(100000) */ * FROM events",
        "SELECT /*+ REBALANCE(100000, id) */ * FROM events",
        "SELECT /*+ REPARTITION_BY_RANGE(100000, id) */ * FROM events",
        "SELECT /*+ BROADCAST(events), REPARTITION(100000) */ * FROM events",
        "SELECT * FROM (SELECT /*+ REPARTITION(100000) */ * FROM events)",
        "SELECT /*+ OF_TOMORROW(1) */ * FROM events",
        "WITH RECURSIVE c(n) MAX RECURSION LEVEL 1000000 AS (SELECT 1 UNION ALL SELECT n FROM c)"
        " SELECT * FROM c",
    ],
)
def test_hints_are_listed_and_their_numbers_bounded(session: SparkSession, text: str) -> None:
    found = refused_in_query(session, text)
    assert found is not None
    assert found.id == "sql.hint"


@pytest.mark.capability("SAFE-02")
@pytest.mark.parametrize("name", sorted(KNOWN.hints))
def test_the_hints_of_the_list_pass(session: SparkSession, name: str) -> None:
    assert refused_in_query(session, f"SELECT /*+ {name}(events) */ * FROM events") is None


def test_a_transform_in_python_calls_what_it_likes(spark: SparkSession, tmp_path: Path) -> None:
    """It is the user's program: nothing of this stands between it and Spark."""
    sandbox = Sandbox(tmp_path, spark)
    sandbox.pipeline(
        "safe",
        SPEC.replace("transform.sql", "transform.py"),
        out_ddl="id INT, name STRING",
        transform_py="from pyspark.sql import functions as F\n\n\ndef transform(sources):\n"
        "    name = F.xpath_string(F.lit('<a>1</a>'), F.lit('a'))\n"
        "    return sources['events'].select('id', F.repeat(name, F.col('id')).alias('name'))\n",
    )
    session = query_session(spark, _loaded(sandbox))
    frames = {"events": session.createDataFrame([(2, "x")], "id INT, name STRING")}
    made = run_transform(session, _loaded(sandbox), frames)
    assert made.collect()[0]["name"] == "11"
    assert "sql_limits" not in made._jdf.queryExecution().analyzed().toString()
