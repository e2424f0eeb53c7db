"""SQL over the slice: what it returns is unexpected; it may compare with static tables, and only read."""

from __future__ import annotations

import pytest

from drawdown.errors import AuditFailed, SpecError, TransformError
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  flights: {format: json, path: landing/flights, schema: flights.ddl}
  airports: {format: delta, path: tables/airports, static: true}
transform: transform.py
sink: {format: delta, path: tables/flights, schema: flights.ddl, publish: audited}
state: {partitions: 2}
"""
KNOWN = "SELECT * FROM slice LEFT ANTI JOIN airports ON origin = faa"
LANDED = "SELECT * FROM slice WHERE landed < departed"


def flights(sandbox: Sandbox, known: str = KNOWN) -> Sandbox:
    """The pipeline `flights`, in Python: its airports are no view of the transform's own."""
    assert sandbox.spark is not None
    airports = str(sandbox.storage / "tables" / "airports")
    sandbox.spark.sql("SELECT explode(array('EWR', 'JFK')) AS faa").write.format("delta").save(airports)
    sandbox.pipeline(
        "flights",
        SPEC,
        flights_ddl="origin STRING, departed INT, landed INT",
        transform_py="def transform(sources):\n    return sources['flights']\n",
        quality_yaml=f"""
            queries:
              - {{name: origin is an airport, unexpected: "{known}"}}
              - {{name: lands after it departs, unexpected: "{LANDED}", severity: warn}}
            """,
    )
    return sandbox


def land(sandbox: Sandbox, name: str, *origins: str, landed: int = 9) -> None:
    rows = [{"origin": origin, "departed": 1, "landed": landed} for origin in origins]
    sandbox.land_json(f"landing/flights/{name}.json", rows)


def test_rows_that_have_no_match_in_another_table_are_counted_and_shown(sandbox: Sandbox) -> None:
    flights(sandbox)
    land(sandbox, "a", "EWR", "JFK")
    assert sandbox.run("flights").verdict == "pass"
    land(sandbox, "b", "JFK", landed=0)
    assert sandbox.run("flights").verdict == "warn"
    land(sandbox, "c", "EWR", "XXX", "XXX", "YYY", "ZZZ")
    with pytest.raises(AuditFailed, match="origin is an airport: query: failed") as caught:
        sandbox.run("flights")
    assert "unexpected: 4" in str(caught.value)
    assert str(caught.value).count("sample:") == 3
    with sandbox.metastore() as metastore:
        failed, held = metastore.verdicts("flights")[0].results
    assert (failed["unexpected_count"], failed["success"], held["success"]) == (4, False, True)
    assert failed["samples"][0] == {"origin": "XXX"}, "the column that the query judges"


@pytest.mark.parametrize(
    ("known", "id"),
    [
        ("DROP TABLE airports", "query.command"),
        ("SELECT * FROM slice WHERE airport = 1", "query.refused"),
        ("SELECT * FROM flights", "query.unknown-table"),
        ("SELECT * FROM text.`/etc/hostname`", "query.unknown-table"),
        ("SELECT java_method('java.lang.System', 'exit', 1)", "sql.function"),
    ],
)
def test_what_is_no_query_over_the_slice_is_refused_before_anything_is_made(
    sandbox: Sandbox, known: str, id: str
) -> None:
    land(flights(sandbox, known), "a", "EWR")
    error = refused(sandbox, "flights", id, SpecError if id == "query.unknown-table" else TransformError)
    assert "origin is an airport" in error.what


def test_a_query_does_not_read_what_still_arrives(sandbox: Sandbox) -> None:
    """A transform in SQL has its sources as views."""
    flights(sandbox, "SELECT * FROM flights")
    sandbox.pipeline(
        "flights", SPEC.replace("transform.py", "transform.sql"), transform_sql="SELECT * FROM flights"
    )
    land(sandbox, "a", "EWR")
    error = refused(sandbox, "flights", "query.streaming", TransformError)
    assert "origin is an airport" in error.what
