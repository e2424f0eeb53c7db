"""SQL of a pipeline reads its own sources, whatever else the catalog of the application has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from drawdown.errors import SpecError
from drawdown.spark.confined_query import NotConfinedError, confined_query
from drawdown.spark.session import query_session
from drawdown.spec import load_pipeline
from drawdown.spec.sql_limits import SqlLimits
from tests.support.quality import pipeline_with
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.capability("SAFE-03")

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: "id INT, name STRING"}
  towns: {format: delta, path: tables/towns, static: true}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: "id INT, name STRING", publish: audited}
state: {partitions: 2}
"""
OWN = """
WITH c AS (SELECT id, name FROM Events)
SELECT c.id, t.town AS name FROM c JOIN `towns` AS t ON t.id = c.id
WHERE c.id IN (SELECT id FROM towns)
"""
VIEWS = ("events", "towns")

LIMITS = SqlLimits()
READS_ITS_OWN = [
    "SELECT * FROM events",
    "SELECT * FROM EVENTS",
    "SELECT * FROM `Events`",
    "SELECT * FROM IDENTIFIER('events')",
    "TABLE events",
    "SELECT events.id, e.who.other FROM events JOIN (SELECT struct(1 AS other) AS who) e",
    "WITH other AS (SELECT 1 AS id) SELECT * FROM other",
    "WITH a AS (SELECT * FROM events), b AS (SELECT * FROM a) SELECT * FROM B",
    "WITH a AS (WITH b AS (SELECT 1 AS id) SELECT * FROM b) SELECT * FROM a",
    "WITH a AS (SELECT 1 AS id) SELECT (SELECT max(id) FROM a) n FROM towns WHERE EXISTS (SELECT 1 FROM a)",
    "WITH a AS (SELECT 1 AS id) SELECT * FROM events, LATERAL (SELECT a.id AS n FROM a)",
    "WITH events AS (SELECT * FROM events) SELECT * FROM events",
    "WITH RECURSIVE other(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM other WHERE n < 5) SELECT * FROM other",
    "WITH a AS (SELECT * FROM events) FROM a |> WHERE id > 0 |> UNION ALL TABLE towns",
    "WITH a AS (SELECT 1 AS id) SELECT * FROM a UNION ALL (WITH b AS (SELECT 2 AS id) SELECT * FROM b)",
    "SELECT * FROM (VALUES (1, 'a')) AS v(id, name)",
    "SELECT * FROM range(3), explode(array(1))",
    "SELECT * FROM events PIVOT (count(id) FOR town IN ('a', 'b'))",
    "SELECT sum(id) OVER w AS s FROM events WINDOW w AS (ORDER BY id)",
]
READS_OTHERS = [
    ("SELECT * FROM other", "other"),
    ("SELECT * FROM `other`", "other"),
    ("SELECT * FROM OTHER", "OTHER"),
    ("TABLE other", "other"),
    ("SELECT * FROM default.other", "default.other"),
    ("SELECT * FROM `default`.`other`", "default.other"),
    ("SELECT * FROM `default.other`", "`default.other`"),
    ("SELECT * FROM spark_catalog.default.other", "spark_catalog.default.other"),
    ("SELECT * FROM theirs.ledger", "theirs.ledger"),
    ("SELECT * FROM IDENTIFIER('other')", "other"),
    ("SELECT * FROM IDENTIFIER('theirs.ledger')", "theirs.ledger"),
    ("SELECT * FROM other VERSION AS OF 0", "other"),
    ("SELECT * FROM other TIMESTAMP AS OF current_timestamp()", "other"),
    ("SELECT * FROM STREAM other", "other"),
    ("SELECT * FROM STREAM(theirs.ledger)", "theirs.ledger"),
    ("SELECT * FROM other WITH ('versionAsOf' = '0')", "other WITH (...)"),
    ("SELECT * FROM events WITH ('path' = '/etc')", "events WITH (...)"),
    ("SELECT * FROM events TIMESTAMP AS OF (SELECT max(id) FROM other)", "other"),
    ("SELECT * FROM other TABLESAMPLE (1 ROWS)", "other"),
    ("SELECT * FROM delta.`/tmp/table`", "delta.`/tmp/table`"),
    ("SELECT * FROM global_temp.shared", "global_temp.shared"),
    ("SELECT * FROM left_behind", "left_behind"),
    ("SELECT * FROM session.events", "session.events"),
    ("SELECT * FROM system.session.left_behind", "system.session.left_behind"),
    ("SELECT * FROM information_schema.tables", "information_schema.tables"),
    ("SELECT * FROM events JOIN other USING (id)", "other"),
    ("SELECT * FROM events NATURAL JOIN theirs.ledger", "theirs.ledger"),
    ("SELECT * FROM events WHERE id IN (SELECT id FROM other)", "other"),
    ("SELECT (SELECT max(id) FROM other) AS n FROM events", "other"),
    ("SELECT * FROM events, LATERAL (SELECT o.id AS n FROM other o)", "other"),
    ("SELECT * FROM events UNION ALL SELECT 1, 'a' UNION ALL TABLE other", "other"),
    ("SELECT sum(id) OVER w FROM events WINDOW w AS (ORDER BY (SELECT max(id) FROM other))", "other"),
    ("SELECT * FROM events PIVOT (max((SELECT max(id) FROM other)) FOR town IN ('a'))", "other"),
    ("SELECT id FROM events GROUP BY id HAVING max(id) > (SELECT max(id) FROM other)", "other"),
    ("SELECT * FROM events LIMIT (SELECT max(id) FROM other)", "other"),
    ("SELECT * FROM events LATERAL VIEW explode(array((SELECT max(id) FROM other))) AS x", "other"),
    ("FROM other |> WHERE id = 1", "other"),
    ("FROM events |> JOIN theirs.ledger USING (id)", "theirs.ledger"),
    ("SELECT * FROM explode(TABLE(other))", "other"),
    ("SELECT * FROM (VALUES ((SELECT max(id) FROM other)))", "other"),
    # An expression's name is known after it in its list, and in the query below.
    ("WITH a AS (SELECT * FROM other), other AS (SELECT 1 AS id) SELECT * FROM a", "other"),
    ("WITH other AS (SELECT * FROM other) SELECT * FROM other", "other"),
    ("SELECT * FROM (WITH other AS (SELECT 1 AS id) SELECT * FROM other) JOIN other USING (id)", "other"),
    ("WITH a AS (WITH other AS (SELECT 1 AS id) SELECT * FROM other) SELECT * FROM a JOIN other", "other"),
    ("SELECT (WITH other AS (SELECT 1 AS id) SELECT max(id) FROM other) FROM other", "other"),
    ("WITH a AS (SELECT 1 AS id) SELECT * FROM default.a", "default.a"),
    ("WITH RECURSIVE a(n) AS (SELECT id FROM other UNION ALL SELECT n + 1 FROM a) SELECT * FROM a", "other"),
]


@pytest.fixture(scope="module")
def catalog(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tables of others in the catalog of one application, and views that somebody else has left there."""
    root = tmp_path_factory.mktemp("others")
    spark.sql("CREATE TABLE other USING delta LOCATION '{}' AS SELECT 7 AS id".format(root / "other"))
    spark.sql("CREATE DATABASE theirs LOCATION '{}'".format(root / "theirs"))
    spark.range(3).write.format("delta").saveAsTable("theirs.ledger")
    spark.sql("CREATE VIEW through AS SELECT * FROM other")
    spark.range(1).createOrReplaceGlobalTempView("shared")
    yield
    spark.sql("DROP VIEW through")
    spark.sql("DROP TABLE other")
    spark.sql("DROP DATABASE theirs CASCADE")
    spark.catalog.dropGlobalTempView("shared")


@pytest.fixture(scope="module")
def session(spark: SparkSession, catalog: None) -> Iterator[SparkSession]:
    made = query_session(spark, pipeline_with("rules: []"))
    made.sql("SELECT 1 AS id, 'a' AS town").createOrReplaceTempView("events")
    made.sql("SELECT 1 AS id, 'a' AS town").createOrReplaceTempView("towns")
    made.sql("SELECT 1 AS id").createOrReplaceTempView("left_behind")
    yield made
    for view in ("events", "towns", "left_behind"):
        made.catalog.dropTempView(view)


@pytest.mark.parametrize("text", READS_ITS_OWN)
def test_a_query_reads_its_own_views(session: SparkSession, text: str) -> None:
    confined_query(session, text, VIEWS, LIMITS)


@pytest.mark.parametrize(("text", "relation"), READS_OTHERS)
def test_a_query_reads_no_table_of_the_catalog(session: SparkSession, text: str, relation: str) -> None:
    with pytest.raises(NotConfinedError) as caught:
        confined_query(session, text, VIEWS, LIMITS)
    assert (caught.value.kind, caught.value.name) == ("relation", relation)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM other",
        "SELECT * FROM theirs.ledger",
        "SELECT * FROM through",
        "SELECT * FROM global_temp.shared",
        "SELECT * FROM left_behind",
        "SELECT * FROM events WHERE id IN (SELECT id FROM other)",
        "WITH a AS (SELECT max(id) AS id FROM theirs.ledger) SELECT * FROM events JOIN a USING (id)",
        "SELECT sum(id) OVER (ORDER BY id) AS s FROM events LIMIT 2 + (SELECT min(id) FROM other)",
    ],
)
def test_what_the_analysed_plan_reads_is_seen_without_the_text(
    session: SparkSession, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drawdown.spark.confined_query._named", lambda *_: None)
    with pytest.raises((NotConfinedError, PySparkException)) as caught:
        confined_query(session, text, VIEWS, LIMITS)
    if isinstance(caught.value, NotConfinedError):
        assert caught.value.kind == "relation"
    else:
        assert "LIMIT" in text, caught.value


def test_where_letters_count_the_analysed_plan_decides(session: SparkSession) -> None:
    strict = session.newSession()
    strict.conf.set("spark.sql.caseSensitive", "true")
    strict.range(1).createOrReplaceTempView("other")
    with pytest.raises((NotConfinedError, PySparkException)):
        confined_query(strict, "SELECT * FROM OTHER", ["other"], LIMITS)
    assert confined_query(strict, "SELECT * FROM other", ["other"], LIMITS).count() == 1


def _pipeline(sandbox: Sandbox, sql: str, quality: str = "queries: []") -> None:
    assert sandbox.spark is not None
    towns = sandbox.storage / "tables" / "towns"
    if not towns.exists():
        sandbox.spark.sql("SELECT 1 AS id, 'Ghent' AS town").write.format("delta").save(str(towns))
        sandbox.land_json("landing/events/1.json", [{"id": 1, "name": "a"}, {"id": 7, "name": "b"}])
    sandbox.pipeline("confined", SPEC, transform_sql=sql, quality_yaml=quality)


def test_a_pipeline_reads_its_sources_and_no_table_of_another(sandbox: Sandbox, catalog: None) -> None:
    _pipeline(sandbox, "SELECT id, name FROM events WHERE id IN (SELECT id FROM theirs.town)")
    error = refused(sandbox, "confined", "transform.unknown-source", SpecError)
    assert "theirs.town, which is no source" in error.what
    assert "did you mean 'towns'?" in error.what
    _pipeline(sandbox, OWN)
    sandbox.run("confined")
    assert sandbox.delta("tables/out") == [(1, "Ghent")]


def test_a_source_may_have_the_name_of_anothers_table(sandbox: Sandbox, catalog: None) -> None:
    spec = SPEC.replace("events:", "other:")
    sandbox.pipeline("confined", spec, transform_sql="SELECT o.* FROM other o")
    assert sandbox.spark is not None
    towns = sandbox.storage / "tables" / "towns"
    sandbox.spark.sql("SELECT 1 AS id").write.format("delta").save(str(towns))
    sandbox.land_json("landing/events/1.json", [{"id": 1, "name": "own"}])
    sandbox.run("confined")
    assert sandbox.delta("tables/out") == [(1, "own")]


def test_a_query_over_the_slice_reads_no_table_of_another(sandbox: Sandbox, catalog: None) -> None:
    of_others = "SELECT * FROM slice JOIN other USING (id)"
    _pipeline(sandbox, OWN, f'queries: [{{name: none, unexpected: "{of_others}"}}]')
    assert "reads other" in refused(sandbox, "confined", "query.unknown-table", SpecError).what
    own = "SELECT * FROM slice LEFT ANTI JOIN towns USING (id)"
    _pipeline(sandbox, OWN, f'queries: [{{name: none, unexpected: "{own}"}}]')
    assert sandbox.run("confined").verdict == "pass"


def test_beside_a_transform_in_python_a_source_is_not_looked_up_in_the_catalog(
    sandbox: Sandbox, catalog: None
) -> None:
    """`other` is a source that arrives, of which a transform in Python makes no view."""
    spec = SPEC.replace("events:", "other:").replace("transform.sql", "transform.py")
    _pipeline(sandbox, OWN)
    sandbox.pipeline(
        "confined",
        spec,
        transform_py="def transform(sources):\n    return sources['other']\n",
        quality_yaml='queries: [{name: none, unexpected: "SELECT * FROM other"}]',
    )
    refused(sandbox, "confined", "query.unknown-table", SpecError)
    assert load_pipeline(sandbox.project, "confined").query_tables == ("slice", "towns")
