"""What SQL functions make is bounded: by the text when it is analysed, by the values of rows when it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from drawdown.errors import TransformError
from drawdown.query.conditions import refused_rule
from drawdown.query.slice_queries import prepare_queries
from drawdown.spark.session import query_session
from drawdown.spark.sql_bounds import is_too_large
from drawdown.spark.sql_checks import refused_in_query, refused_unparsed
from drawdown.spark.sql_functions import sql_functions
from drawdown.spec import load_project
from tests.support.quality import pipeline_with
from tests.support.refusals import planned, refused
from tests.support.sandbox import Sandbox

# By function: what the text alone shows to be too large.
BY_TEXT = {
    "repeat": [
        "repeat('x', 2000000000)",
        "repeat('x', 1000 * 1000 * 1000)",
        "repeat(repeat('x', 9999), 9999)",
    ],
    "space": ["space(2000000000)"],
    "lpad": ["lpad(s, 2000000000, 'x')"],
    "rpad": ["rpad(s, 2000000000)"],
    "randstr": ["randstr(1000000000)"],
    "approx_count_distinct": [
        "approx_count_distinct(n, 0.0001)",
        "approx_count_distinct(n, 0.01D)",
        "approx_count_distinct(DISTINCT n, 1 / 100000)",
        "approx_count_distinct(n, 0.0001F) FILTER (WHERE n > 0)",
    ],
    "to_json": [
        "to_json(transform(sequence(1, n), x -> named_struct(repeat('x', 10000), x)))",
        "to_json(map('a', array(named_struct(repeat('x', 10000), n))))",
    ],
    "to_xml": [
        "to_xml(struct(array(parse_json(s)) AS a))",
        "to_xml(struct(transform(sequence(1, n), x -> named_struct(repeat('x', 10000), x)) AS a))",
    ],
    "to_variant_object": [
        "to_variant_object(transform(sequence(1, n), x -> named_struct(repeat('x', 10000), x)))"
    ],
    "format_string": ["format_string('%2000000000d', n)", "format_string('%1$-9.2000000000f', d)"],
    "printf": ["printf('%2000000000d', n)", "printf(s, n)", f"printf('{'%1$s' * 20}', repeat('a', 1600000))"],
    "format_number": ["format_number(n, 2000000000)"],
    "round": ["round(d, 2000000000)", "round(d, -2000000000)"],
    "bround": ["bround(d, 2000000000)"],
    "ceil": ["ceil(d, 2000000000)"],
    "ceiling": ["ceiling(d, 2000000000)"],
    "floor": ["floor(d, 2000000000)"],
    "replace": [
        "replace(repeat('a', 9999), 'a', repeat('b', 9999))",
        "replace(repeat('A', 9999) COLLATE UTF8_LCASE, 'a', repeat('b', 9999))",
    ],
    "regexp_replace": ["regexp_replace(repeat('a', 9999), 'a', repeat('b', 9999))"],
    "concat_ws": ["concat_ws(repeat('a', 9999), array_repeat('', 9999))"],
    "array_join": [
        "array_join(array_repeat('', 9999), repeat('a', 9999))",
        "array_join(array_repeat(CAST(NULL AS STRING), 9999), ',', repeat('x', 9999))",
    ],
    "array_repeat": ["array_repeat(1, 2000000000)"],
    "array_insert": ["array_insert(array(1), 2000000000, 1)", "array_insert(array(1), -2000000000, 1)"],
    "sequence": [
        "sequence(1, 2000000000)",
        "sequence(TIMESTAMP '2000-01-01', TIMESTAMP '2024-01-01', INTERVAL 1 SECOND)",
        "sequence(DATE '0001-01-01', DATE '9999-01-01')",
        "sequence(TIMESTAMP '2000-01-01', t, make_interval(0, 0, 0, n))",
    ],
    "stack": ["stack(2000000000, 1, 2)"],
    "count_min_sketch": ["count_min_sketch(n, 1e-9D, 0.9D, 1)"],
    "theta_sketch_agg": ["theta_sketch_agg(n, 26)"],
    "theta_union": ["theta_union(b, b, 26)"],
    "theta_union_agg": ["theta_union_agg(b, 26)"],
    "tuple_sketch_agg_double": ["tuple_sketch_agg_double(n, d, 26)"],
    "tuple_sketch_agg_integer": ["tuple_sketch_agg_integer(n, n, 26)"],
    "tuple_union_agg_double": ["tuple_union_agg_double(b, 26)"],
    "tuple_union_agg_integer": ["tuple_union_agg_integer(b, 26)"],
    "tuple_union_double": ["tuple_union_double(b, b, 26)"],
    "tuple_union_integer": ["tuple_union_integer(b, b, 26)"],
    "tuple_union_theta_double": ["tuple_union_theta_double(b, b, 26)"],
    "tuple_union_theta_integer": ["tuple_union_theta_integer(b, b, 26)"],
    "st_geomfromwkb": [
        "st_geomfromwkb(unhex(repeat('010700000001000000', 1000)))",
        "st_geomfromwkb(unhex(repeat('01EF03000001000000', 1000)))",
        "st_geomfromwkb(unhex(repeat('000000000700000001', 1000)))",
        "st_geomfromwkb(unhex(repeat('000000000700000001010700000001000000', 600)))",
    ],
    "listagg": ["listagg(s, repeat('x', 16000000))"],
    "string_agg": ["string_agg(s, repeat('x', 999)) WITHIN GROUP (ORDER BY n)"],
    "st_geogfromwkb": ["st_geogfromwkb(unhex(repeat('010700000001000000', 1000)))"],
    "get_json_object": ["get_json_object(s, concat('$', repeat('[0]', 101)))"],
    "window": ["window(t, '1000000 days', '1 second')", "window(t, '401 hours', '1 hour')"],
    "aggregate": [],
    "reduce": [],
    "theta_intersection_agg": [],
}
# What only the values of a row show.
BY_ROW = [
    "repeat(s, big)",
    "repeat('x', nvl(2000000000, 1))",
    "repeat('x', cast(1e9 + rand() * 1e9 AS INT))",
    "repeat(repeat(s, 9999), 9999)",
    "concat(lpad(s, big, 'x'), '')",
    "space(big)",
    "format_number(n, big)",
    "size(sequence(1, big))",
    "size(sequence(t, t + make_dt_interval(n * 1000), INTERVAL 1 SECOND))",
    "size(array_repeat(s, big))",
    "size(array_repeat(array_repeat(s, 99999 + n), 99999))",
    "size(array_insert(array(1), big, 1))",
    "replace(repeat(s, 9999), 'a', repeat('b', 9999))",
    "replace(repeat(s, 2999) COLLATE UTF8_LCASE, 'A', repeat('b', 9999))",
    "replace(repeat(s, 2999), 'AB' COLLATE UTF8_LCASE, repeat('b', 9999))",
    "regexp_replace(repeat(s, 2999) COLLATE UTF8_LCASE, 'A', repeat('b', 9999))",
    "regexp_replace(repeat(s, 2200), '(?=(.*))', '$1')",
    "regexp_replace(repeat(s, 2200), '(?x)( ?=(?<all>.*))', '${all}')",
    "regexp_replace(repeat(s, 2999), '(?<=(.{1,9}))b', '$1')",
    "array_join(array_repeat(CAST(NULL AS STRING), 9999), ',', repeat(s, 9999))",
    "concat_ws(repeat(s, 9999), IF(n > 0, NULL, s), array_repeat('', 9999))",
    f"printf('{'%1$s' * 20}', repeat(s, 1600000))",
    f"format_string('%s{'%<s' * 20}', repeat(s, 1600000))",
    "regexp_replace(repeat(s, 9999), 'a', repeat('b', 9999))",
    "regexp_replace(repeat(s, 4999999), '(.+)', '$1$1$1$1')",
    "concat_ws(repeat(s, 9999), array_repeat('', 9999))",
    "array_join(array_repeat('', 9999), repeat(s, 9999))",
    "get_json_object(repeat('[', 900 + n), concat('$', repeat('[0]', 890 + n)))",
    "st_asbinary(st_geomfromwkb(unhex(repeat('010700000001000000', 99999 + n))))",
    "aggregate(sequence(1, 40), s, (a, i) -> concat(a, a))",
    "size(reduce(sequence(1, 40), array(s), (a, i) -> concat(a, a)))",
    "transform(array(n, big), x -> repeat('a', x))[0]",
]
FIT = {
    "repeat(s, n)": "ab" * 5,
    "repeat('-', 3)": "---",
    "lpad(s, n, '0')": "000ab",
    "lpad(cast(n AS STRING), 2, '0')": "05",
    "space(n)": " " * 5,
    "size(sequence(1, n))": 5,
    "size(sequence(t, t + INTERVAL 1 DAY, INTERVAL 1 HOUR))": 25,
    "array_repeat(s, 2)": ["ab", "ab"],
    "array_insert(array(1), n, 2)": [1, None, None, None, 2],
    "replace(s, 'a', 'bbb')": "bbbb",
    "replace(s, 'a')": "b",
    "regexp_replace(s, '(a)', '$1-')": "a-b",
    "regexp_replace(s, 'b', '')": "a",
    "regexp_replace(s, '(?=(.*))', '$1')": "abab" + "b",
    "length(regexp_replace(repeat(s, 9999), '(a)(b)', '$2$1-'))": 29997,
    "replace(s COLLATE UTF8_LCASE, 'B', 'cc')": "acc",
    "regexp_replace(s COLLATE UTF8_LCASE, 'B', 'cc')": "acc",
    "array_join(array(s, NULL), ',', repeat('-', 99))": "ab," + "-" * 99,
    "printf('%1$s-%1$s %2$d', s, n)": "ab-ab 5",
    "printf('%s %s %s', s, n, repeat('x', 9))": "ab 5 xxxxxxxxx",
    "approx_count_distinct(s, 0.02)": 1,
    "to_json(array(named_struct('a', n)))": '[{"a":5}]',
    "to_json(to_variant_object(named_struct('a', n)))": '{"a":5}',
    "length(to_json(named_struct(repeat('a', 999), n)))": 1005,
    "concat_ws(', ', s, array(s))": "ab, ab",
    "concat_ws(s, 'x', array('y', 'z'))": "xabyabz",
    "aggregate(array(1, 2), 0, (a, x) -> a + x)": 3,
    "aggregate(array(s, s), '', (a, x) -> concat(a, x), a -> upper(a))": "ABAB",
    "hex(st_asbinary(st_geomfromwkb(unhex(concat('0101000000', repeat('0', 32))))))": "0101000000" + "0" * 32,
    "len(st_asbinary(st_geomfromwkb(unhex(concat('0102000000A0860100', repeat('07', 1600000))))))": 1_600_009,
    "get_json_object('{\"a\": [[5]]}', '$.a[0][0]')": "5",
    "get_json_object(concat('{\"a\": [', n, ']}'), concat('$.', 'a', '[0]'))": "5",
    "listagg(s, ', ') WITHIN GROUP (ORDER BY n)": "ab",
    "string_agg(DISTINCT s)": "ab",
    "format_string('%05d', n)": "00005",
    "round(d, 1)": 1.3,
    "repeat(cast(null AS STRING), big)": None,
    "transform(array(1, 2), x -> repeat(s, x))": ["ab", "abab"],
    "max(repeat(s, n))": "ab" * 5,
}

_SCHEMA = StructType([StructField("n", IntegerType()), StructField("s", StringType())])
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: "k STRING, n INT"}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl, MODE}
state: {partitions: 2}
"""


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    made = query_session(spark, pipeline_with("rules: []"))
    # A local relation: Spark computes with its values while it optimises, without a job.
    made.sql(
        "SELECT * FROM VALUES (5, 2000000000, 'ab', 1.25D, CAST('a' AS BINARY), TIMESTAMP '2024-01-01')"
        " AS r(n, big, s, d, b, t)"
    ).createOrReplaceTempView("rows_of_sizes")
    yield made
    made.catalog.dropTempView("rows_of_sizes")


@pytest.mark.capability("SAFE-01")
def test_every_function_that_grows_has_its_attack() -> None:
    assert set(BY_TEXT) == {name for name, kind in sql_functions().scalar.items() if kind == "grows"}


@pytest.mark.capability("SAFE-01")
@pytest.mark.parametrize("call", [each for calls in BY_TEXT.values() for each in calls])
def test_what_the_text_shows_to_be_too_large_is_refused_when_it_is_analysed(
    session: SparkSession, call: str
) -> None:
    with pytest.raises(PySparkException) as caught:
        session.sql(f"SELECT {call} AS x FROM rows_of_sizes")
    assert is_too_large(str(caught.value))
    assert call.split("(")[0] in str(caught.value)


@pytest.mark.capability("SAFE-01")
@pytest.mark.parametrize(
    "table",
    ["range(100000000000)", "range(0, 10, 1, 100000000)", "range(-9000000000000000000, 9000000000000000000)",
     "stack(2000000000, 1, 2)"],
)  # fmt: skip
def test_so_are_rows_and_partitions(session: SparkSession, table: str) -> None:
    with pytest.raises(PySparkException) as caught:
        session.sql(f"SELECT * FROM {table}")
    assert is_too_large(str(caught.value))


@pytest.mark.capability("SAFE-01")
def test_a_group_by_has_a_bounded_number_of_sets(session: SparkSession) -> None:
    columns = ", ".join(f"n + {number}" for number in range(40))
    query = "SELECT count(*) FROM rows_of_sizes GROUP BY {}"
    for by in (f"CUBE ({columns})", f"GROUPING SETS (CUBE ({columns}), (n))"):
        found = refused_unparsed(session, query.format(by))
        assert found is not None, by
        assert (found.id, "1099511627776 sets" in found.what) == ("sql.size", True)
    seven = ", ".join(f"n + {number}" for number in range(7))
    for by in (
        f"{columns} WITH CUBE",
        f"CUBE ({seven}), CUBE ({seven})",
        f"ROLLUP ({columns}), CUBE ({seven})",
    ):
        assert refused_unparsed(session, query.format(by)) is None
        found = refused_in_query(session, query.format(by))
        assert found is not None, by
        assert found.id == "sql.size"
    for by in (f"CUBE ({seven})", f"ROLLUP ({columns})", "GROUPING SETS (CUBE (n, s), (n))"):
        assert refused_unparsed(session, query.format(by)) is None
        assert refused_in_query(session, query.format(by)) is None
    text = query.format(f"GROUPING SETS (CUBE ({columns}))").replace("rows_of_sizes", "slice")
    with pytest.raises(TransformError, match=r"sql\.size"):
        prepare_queries(
            session, pipeline_with(f'queries: [{{name: odd, unexpected: "{text}"}}]'), _SCHEMA, {}
        )


@pytest.mark.capability("SAFE-01")
def test_what_a_row_shows_to_be_too_large_ends_the_query_and_not_the_driver(session: SparkSession) -> None:
    for call in BY_ROW:
        frame = session.sql(f"SELECT {call} AS x FROM rows_of_sizes")
        with pytest.raises(PySparkException) as caught:
            frame.collect()
        assert is_too_large(str(caught.value)), call
        assert "(`sql_limits: {" in str(caught.value) or "(which no setting changes)" in str(caught.value)
    assert session.sql("SELECT 1").collect() == [(1,)]


@pytest.mark.capability("SAFE-01")
@pytest.mark.parametrize("schema", ['"bytes"', '"string"', '{"type": "array", "items": "null"}'])
def test_a_length_in_bytes_of_avro_takes_no_memory_before_it_is_read(
    session: SparkSession, schema: str
) -> None:
    """A record of five bytes says that it holds 1.9 GB."""
    call = f"from_avro(unhex('80ccfd930e'), '{schema}', map('mode', 'MODE')) AS x"
    frame = session.range(0, 10, 1, 1).selectExpr(call.replace("MODE", "PERMISSIVE"))
    assert frame.collect()[0]["x"] is None
    with pytest.raises((PySparkException, Py4JJavaError), match="FAILFAST"):
        session.range(1).selectExpr(call.replace("MODE", "FAILFAST")).collect()


@pytest.mark.capability("SAFE-01")
def test_what_fits_is_as_it_was(spark: SparkSession, session: SparkSession) -> None:
    frame = session.sql("SELECT * FROM rows_of_sizes")
    for call, value in FIT.items():
        assert frame.selectExpr(f"{call} AS x").collect()[0]["x"] == value, call


@pytest.mark.capability("SAFE-01")
def test_the_limits_are_settings_of_the_project(spark: SparkSession, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, spark)
    file = sandbox.root / "include" / "project.yaml"
    file.write_text(file.read_text() + "\nsql_limits: {text: 1k, elements: 10, partitions: 5}\n")
    assert load_project(sandbox.root).sql_limits.text_bytes == 1024
    sandbox.pipeline("sized", SPEC.replace(", MODE", ""), transform_sql="SELECT 1", out_ddl="k STRING")
    from drawdown.spec import load_pipeline

    session = query_session(spark, load_pipeline(sandbox.project, "sized"))
    for expression in ("repeat('x', 1025)", "sequence(1, 12)"):
        with pytest.raises(PySparkException, match="sql_limits"):
            session.sql(f"SELECT {expression}")
    sandbox.pipeline(
        "sized",
        SPEC.replace(", MODE", ""),
        transform_sql="SELECT /*+ REPARTITION(6) */ k FROM events",
        out_ddl="k STRING",
    )
    sandbox.land_json("landing/events/1.json", [{"k": "a", "n": 1}])
    assert "the limit is 5" in refused(sandbox, "sized", "sql.hint", TransformError).what


@pytest.mark.capability("SAFE-01")
def test_each_place_says_it_in_one_sentence(sandbox: Sandbox) -> None:
    spec = SPEC.replace(", MODE", "")
    sandbox.pipeline(
        "sized", spec, transform_sql="SELECT repeat('x', 2000000000) AS k FROM events", out_ddl="k STRING"
    )
    sandbox.land_json("landing/events/1.json", [{"k": "a", "n": 2000000000}])
    error = refused(sandbox, "sized", "sql.size", TransformError)
    assert error.what == (
        "the transform of sized: repeat would make 2000000000 bytes, and the limit is 16777216"
        " (`sql_limits: {text: ...}` in include/project.yaml)"
    )
    sandbox.pipeline("sized", spec, transform_sql="SELECT repeat(k, n) AS k FROM events", out_ddl="k STRING")
    failed = sandbox.drain("sized")[0].error
    assert failed is not None
    assert failed.id == "sql.size"
    assert failed.what.startswith("repeat would make 2000000000 bytes")


@pytest.mark.capability("SAFE-01")
def test_a_rule_and_a_query_too(session: SparkSession) -> None:
    rule = pipeline_with("rules: [{name: odd, check: \"repeat('x', 2000000000) > ''\", on_fail: warn}]")
    rows = session.sql("SELECT * FROM rows_of_sizes")
    with pytest.raises(PySparkException) as caught:
        rows.where(rule.quality.rules[0].check)
    assert refused_rule(rule, "flights", rows, caught.value).id == "sql.size"
    query = pipeline_with('queries: [{name: odd, unexpected: "SELECT space(2000000000) FROM slice"}]')
    with pytest.raises(TransformError, match=r"sql\.size"):
        prepare_queries(session, query, rows.schema, {})


@pytest.mark.sampled
@pytest.mark.capability("SAFE-01")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat(k, n) AS k, count(*) AS n FROM events GROUP BY repeat(k, n)",
        "SELECT k, count(*) AS n FROM (SELECT k, explode(sequence(1, n)) AS i FROM events) GROUP BY k, i",
        "SELECT replace(upper(lpad(k, n, 'ab')), 'A', 'bb') AS k, sum(size(array_repeat(k, n))) AS n"
        " FROM events GROUP BY 1",
        "SELECT k, sum(length(aggregate(array(k, k), '', (a, x) -> concat(a, x)))) AS n FROM events"
        " GROUP BY k",
    ],
)
def test_a_checkpoint_from_before_the_bounds_goes_on(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    spec = SPEC.replace("MODE", "mode: complete")
    sandbox.pipeline("sized", spec, transform_sql=sql, out_ddl="k STRING, n BIGINT")
    sandbox.land_json("landing/events/1.json", [{"k": "a", "n": 2}])
    bounded = planned(sandbox, "sized")
    monkeypatch.setattr("drawdown.spark.session.bound_functions", lambda *_: None)
    before = planned(sandbox, "sized")
    assert before.query is not None, before.errors
    assert bounded.query is not None, bounded.errors
    assert bounded.query.fingerprint == before.query.fingerprint
