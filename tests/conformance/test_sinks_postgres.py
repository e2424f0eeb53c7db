"""PostgreSQL as a sink: append and upsert over several drains; what is refused before anything is made."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from drawdown.errors import RefusedError, SpecError
from tests.support.database import TestDatabase
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox, multiset, sorted_rows

SPEC = """
sources:
  sales: {format: json, path: landing/sales, schema: sales.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: postgres, table: public.out, schema: out.ddl, SINK}
state: {partitions: 2}
"""
APPEND = SPEC.replace("SINK", "mode: append")
TOTALS = {
    "sales_ddl": "shop STRING, amount BIGINT",
    "out_ddl": "shop STRING, total BIGINT",
    "transform_sql": "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop",
}
PLAIN = {**TOTALS, "transform_sql": "SELECT shop, amount AS total FROM sales"}


@pytest.fixture
def sandbox(postgres_sandbox: Sandbox) -> Sandbox:
    return postgres_sandbox


def _waves() -> Iterator[list[list[dict[str, Any]]]]:
    """Two drains of two files each; a batch is one file. The shop None is a key like any other."""
    numbers = random.Random(5)
    for _ in range(2):
        yield [
            [{"shop": numbers.choice(["a", "b", None]), "amount": numbers.randint(1, 99)} for _ in range(20)]
            for _ in range(2)
        ]


def _drain(sandbox: Sandbox) -> list[tuple[Any, ...]]:
    """Both waves, each by a drain of its own; every row that arrived."""
    landed = []
    for wave, files in enumerate(_waves()):
        for number, rows in enumerate(files):
            sandbox.land_json(f"landing/sales/{wave}-{number}.json", rows, mtime=10 * wave + number + 1)
            landed += [(row["shop"], row["amount"]) for row in rows]
        sandbox.run("out")
    return landed


@pytest.mark.sampled
@pytest.mark.conformance("SINK-06")
@pytest.mark.parametrize("publish", ["audited", "direct"])
def test_appended_rows_are_there_once_after_each_drain(
    sandbox: Sandbox, database: TestDatabase, publish: str
) -> None:
    sandbox.pipeline("out", SPEC.replace("SINK", f"mode: append, publish: {publish}"), **PLAIN)
    landed = _drain(sandbox)
    assert multiset(database.table()) == multiset(landed)
    assert sandbox.drain("out")[0].run is None, "nothing new, nothing done"
    assert multiset(database.table()) == multiset(landed)
    assert database.execute("SELECT last_batch FROM drawdown_ledger") == [(3,)]


@pytest.mark.sampled
@pytest.mark.conformance("SINK-06")
@pytest.mark.parametrize("publish", ["audited", "direct"])
def test_a_key_has_the_values_of_its_last_row(sandbox: Sandbox, database: TestDatabase, publish: str) -> None:
    sandbox.pipeline("out", SPEC.replace("SINK", f"mode: update, keys: [shop], publish: {publish}"), **TOTALS)
    landed = _drain(sandbox)
    shops = {shop for shop, _ in landed}
    assert None in shops
    expected = [(shop, sum(n for each, n in landed if each == shop)) for shop in shops]
    assert database.table() == sorted_rows(expected)


@pytest.mark.full
def test_complete_mode_shows_the_last_result_whole(sandbox: Sandbox, database: TestDatabase) -> None:
    sandbox.pipeline("out", SPEC.replace("SINK", "mode: complete"), **TOTALS)
    landed = _drain(sandbox)
    shops = {shop for shop, _ in landed}
    assert database.table() == sorted_rows([(s, sum(n for t, n in landed if t == s)) for s in shops])


def test_every_type_comes_back_as_it_was(sandbox: Sandbox, database: TestDatabase) -> None:
    kinds = (
        "b BOOLEAN, i8 TINYINT, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(20,4), s STRING, x BINARY,"
        " day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, words ARRAY<STRING>, pair STRUCT<k: STRING, v: INT>"
    )
    select = (
        "true AS b, 1Y AS i8, 2 AS i, 3L AS l, CAST(1.5 AS FLOAT) AS f, CAST('NaN' AS DOUBLE) AS d,"
        " CAST('123456789012.3456' AS DECIMAL(20,4)) AS n, amount AS s, X'00FF' AS x,"
        " DATE'2024-02-29' AS day, TIMESTAMP'2024-02-29 01:02:03.000004' AS at,"
        " TIMESTAMP_NTZ'2024-02-29 01:02:03' AS local,"
        " array(amount, NULL) AS words, named_struct('k', amount, 'v', 7) AS pair"
    )
    nulls = ", ".join(
        f"CAST(NULL AS {kind.partition(' ')[2]}) AS {kind.split()[0]}" for kind in _split(kinds)
    )
    sandbox.pipeline(
        "out",
        APPEND,
        sales_ddl="amount STRING",
        out_ddl=kinds,
        transform_sql=f"SELECT {select} FROM sales UNION ALL SELECT {nulls} FROM sales",
    )
    odd = ['a "quoted", text', "", "two\nlines", "\\.", "\\N", "tab\tand \\ and {}", "Zürich 東京 🚲", "NULL"]
    sandbox.land_json("landing/sales/1.json", [{"amount": text} for text in odd])
    sandbox.run("out")
    found = database.execute("SELECT *, d::text FROM public.out WHERE b")
    assert sorted(row[7] for row in found) == sorted(odd)
    for row in found:
        assert row[:5] == (True, 1, 2, 3, 1.5)
        assert (row[14], str(row[6]), row[8]) == ("NaN", "123456789012.3456", b"\x00\xff")
        assert str(row[9]) == "2024-02-29"
        assert row[10].isoformat().startswith("2024-02-29T01:02:03.000004")
        assert row[10].utcoffset().total_seconds() == 0
        assert row[11].isoformat() == "2024-02-29T01:02:03"
        assert row[12:14] == ([row[7], None], {"k": row[7], "v": 7})
    empty = database.execute("SELECT * FROM public.out WHERE b IS NULL")
    assert empty == [(None,) * 14] * len(odd)


def _split(kinds: str) -> list[str]:
    parts = kinds.replace("(20,4)", "(20;4)").replace("k: STRING, v", "k: STRING; v").split(", ")
    return [part.replace(";", ",") for part in parts]


@pytest.mark.full
def test_a_table_with_rows_and_one_with_other_columns_are_refused(
    sandbox: Sandbox, database: TestDatabase
) -> None:
    sandbox.pipeline("out", APPEND, **PLAIN)
    sandbox.land_json("landing/sales/1.json", [{"shop": "a", "amount": 1}])
    database.execute(
        "CREATE TABLE public.out (shop text, total bigint); INSERT INTO public.out VALUES ('x', 0)"
    )
    refused(sandbox, "out", "sink.not-ours", RefusedError)
    database.execute("DROP TABLE public.out; CREATE TABLE public.out (shop text, total text, more text)")
    error = refused(sandbox, "out", "sink.schema-drift", RefusedError)
    assert "`total` is text instead of bigint" in error.what
    assert "`more` is extra" in error.what
    assert database.execute("SELECT to_regclass('drawdown_ledger')") == [(None,)]
    database.execute(
        "DROP TABLE public.out;"
        "CREATE TABLE public.out (loaded timestamptz DEFAULT now(), total bigint, shop varchar)"
    )
    sandbox.run("out")
    assert database.execute("SELECT shop, total FROM public.out WHERE loaded IS NOT NULL") == [("a", 1)]


@pytest.mark.full
def test_a_table_that_was_made_again_is_refused_by_a_live_checkpoint(
    sandbox: Sandbox, database: TestDatabase
) -> None:
    sandbox.pipeline("out", APPEND, **PLAIN)
    sandbox.land_json("landing/sales/1.json", [{"shop": "a", "amount": 1}], mtime=1)
    sandbox.run("out")
    sandbox.land_json("landing/sales/2.json", [{"shop": "b", "amount": 2}], mtime=2)
    database.execute(
        "ALTER TABLE public.out RENAME TO kept; CREATE TABLE public.out (shop text, total bigint)"
    )
    refused(sandbox, "out", "sink.missing", RefusedError)
    database.execute("DROP TABLE public.out; ALTER TABLE kept RENAME TO out")
    sandbox.run("out")
    assert database.table() == [("a", 1), ("b", 2)]


@pytest.mark.full
def test_update_mode_needs_a_unique_constraint_in_which_null_keys_are_equal(
    sandbox: Sandbox, database: TestDatabase
) -> None:
    sandbox.pipeline("out", SPEC.replace("SINK", "mode: update, keys: [shop]"), **TOTALS)
    sandbox.land_json("landing/sales/1.json", [{"shop": None, "amount": 1}])
    database.execute("CREATE TABLE public.out (shop text UNIQUE, total bigint)")
    error = refused(sandbox, "out", "sink.no-key", RefusedError)
    database.execute(error.do)
    sandbox.run("out")
    assert database.table() == [(None, 1)]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("ddl", "says"), [("shop INTERVAL DAY", "interval day"), ("xmin STRING", "a name of PostgreSQL's own")]
)
def test_a_column_that_postgresql_does_not_have_is_refused(
    sandbox: Sandbox, database: TestDatabase, ddl: str, says: str
) -> None:
    column, kind = ddl.split(" ", 1)
    files = {
        **PLAIN,
        "out_ddl": ddl,
        "transform_sql": f"SELECT CAST(NULL AS {kind}) AS {column} FROM sales",
    }
    sandbox.pipeline("out", APPEND, **files)
    sandbox.land_json("landing/sales/1.json", [{"shop": "a", "amount": 1}])
    assert says in refused(sandbox, "out", "sink.unfit-column", SpecError).what


def test_text_that_postgresql_cannot_keep_stops_the_batch_before_it_is_staged(
    sandbox: Sandbox, database: TestDatabase
) -> None:
    sandbox.pipeline("out", APPEND, **PLAIN)
    sandbox.land("landing/sales/1.json", json.dumps({"shop": "a\0b", "amount": 1}) + "\n")
    error = sandbox.drain("out")[0].error
    assert error is not None
    assert (error.id, database.table()) == ("sink.unfit-text", [])
    transform = sandbox.root / "include/pipelines/out/transform.sql"
    transform.write_text("SELECT replace(shop, char(0), '') AS shop, amount AS total FROM sales")
    sandbox.run("out")
    assert database.table() == [("ab", 1)]
