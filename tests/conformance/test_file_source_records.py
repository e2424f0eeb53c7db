"""SRC: schemas of files, partition folders, and records that cannot be read."""

from __future__ import annotations

from datetime import date

import pytest

from drawdown.errors import RefusedError, SourceError, SpecError
from tests.support.refusals import refused, refused_spec
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  rows: {{format: {format}, path: landing/rows, {more}}}
transform: transform.sql
sink: {{format: delta, path: tables/out, schema: out.ddl}}
state: {{partitions: 2}}
"""


def _spec(more: str, format: str = "json") -> str:
    return SPEC.format(format=format, more=more)


@pytest.mark.conformance("SRC-09")
@pytest.mark.parametrize("schema", ["schema: rows.ddl", 'schema: "id INT, name STRING"'])
def test_the_schema_is_a_file_or_ddl_in_the_spec(sandbox: Sandbox, schema: str) -> None:
    sandbox.pipeline(
        "declared",
        _spec(schema),
        rows_ddl="id INT, name STRING",
        out_ddl="id INT, name STRING",
        transform_sql="SELECT * FROM rows",
    )
    sandbox.land_json("landing/rows/1.json", [{"id": 1, "name": "one"}])
    sandbox.run("declared")
    sandbox.land_json("landing/rows/2.json", [{"id": 2, "name": "two", "more": True}, {"name": "no id"}])
    sandbox.run("declared")
    assert sandbox.delta("tables/out") == [(1, "one"), (2, "two"), (None, "no id")]


@pytest.mark.conformance("SRC-09")
@pytest.mark.parametrize("format", ["json", "csv"])
def test_an_inferred_schema_is_kept_when_files_have_more_columns(sandbox: Sandbox, format: str) -> None:
    options = "options: {header: true}" if format == "csv" else "options: {}"
    sandbox.pipeline(
        "inferred",
        _spec(f"infer_schema: true, {options}", format),
        out_ddl="id BIGINT, amount DOUBLE",
        transform_sql="SELECT CAST(id AS BIGINT) AS id, amount FROM rows",
    )
    first = {"json": '{"id": 1, "amount": 1.5}\n', "csv": "id,amount\n1,1.5\n"}
    later = {"json": '{"id": 2, "amount": 2.5, "extra": "x"}\n', "csv": "id,amount\n2,2.5\n"}
    sandbox.land(f"landing/rows/1.{format}", first[format])
    sandbox.run("inferred")
    kept = sandbox.storage / "_drawdown/inferred/schema-1/rows.ddl"
    ddl = kept.read_text()
    assert "amount DOUBLE" in ddl

    sandbox.land(f"landing/rows/2.{format}", later[format])
    sandbox.run("inferred")
    assert kept.read_text() == ddl
    assert sandbox.delta("tables/out") == [(1, 1.5), (2, 2.5)]

    kept.unlink()
    sandbox.land(f"landing/rows/3.{format}", first[format])
    error = refused(sandbox, "inferred", "source.schema-lost", RefusedError)
    assert "inferred for source rows is missing" in error.what


@pytest.mark.conformance("SRC-09")
def test_nothing_is_inferred_from_no_data_or_without_being_asked(sandbox: Sandbox) -> None:
    aside = {"out_ddl": "id BIGINT", "transform_sql": "SELECT id FROM rows"}
    sandbox.pipeline("empty", _spec("infer_schema: true"), **aside)
    sandbox.land("landing/rows/1.json", "")
    error = refused(sandbox, "empty", "source.nothing-to-infer", SourceError)
    assert "there is no data to infer it from" in error.what
    assert "schema:" in error.do
    sandbox.land_json("landing/rows/2.json", [{"id": 1}])
    sandbox.run("empty")
    assert sandbox.delta("tables/out") == [(1,)]

    unasked = refused_spec(sandbox, "unasked", _spec("options: {}"), "spec.missing-key", **aside)
    assert "infer_schema: true" in unasked.do
    both = _spec("schema: id INT, infer_schema: true")
    refused_spec(sandbox, "both", both, "spec.contradiction", **aside)


DAILY = 'schema: "id INT, day DATE"'


@pytest.mark.full
@pytest.mark.conformance("SRC-10")
def test_partition_columns_of_the_schema_come_from_the_folders(sandbox: Sandbox) -> None:
    aside = {"out_ddl": "id INT, day DATE", "transform_sql": "SELECT id, day FROM rows"}
    sandbox.pipeline("daily", _spec(DAILY), **aside)
    sandbox.land_json("landing/rows/day=2024-01-01/1.json", [{"id": 1}])
    sandbox.run("daily")
    sandbox.land_json("landing/rows/day=2024-01-01/2.json", [{"id": 2}])
    sandbox.land_json("landing/rows/day=2024-01-02/1.json", [{"id": 3}])
    sandbox.run("daily")
    first, second = date(2024, 1, 1), date(2024, 1, 2)
    assert sandbox.delta("tables/out") == [(1, first), (2, first), (3, second)]

    other = sandbox.land_json("landing/rows/date=2024-01-03/1.json", [{"id": 4}])
    error = refused(sandbox, "daily", "source.partition-columns", RefusedError)
    assert "partitioned by" in error.what
    assert "must remain static" in error.what
    assert error.where.endswith("landing/rows/date=2024-01-03")
    other.rename(sandbox.storage / "landing/rows/day=2024-01-02/4.json")
    sandbox.run("daily")
    assert sandbox.delta("tables/out")[-1] == (4, second)

    stray = sandbox.land_json("landing/rows/5.json", [{"id": 5}])
    error = refused(sandbox, "daily", "source.partition-columns", RefusedError)
    assert "by day, others in no partition folder" in error.what
    stray.unlink()

    sandbox.land_json("landing/rows/day=never/1.json", [{"id": 6}])
    error = refused(sandbox, "daily", "source.partition-value", SourceError)
    assert "'never'" in error.what


@pytest.mark.conformance("SRC-10")
def test_a_partition_column_that_the_schema_lacks_is_refused(sandbox: Sandbox) -> None:
    aside = {"out_ddl": "id INT", "transform_sql": "SELECT id FROM rows"}
    sandbox.pipeline("guessed", _spec('schema: "id INT"'), **aside)
    sandbox.land_json("landing/rows/day=1/1.json", [{"id": 1}])
    error = refused(sandbox, "guessed", "source.partition-undeclared", SpecError)
    assert "Spark would guess the type again in each run" in error.what


RECORDS = {
    "csv": ["1,one\n2,two\n", "3,three\nx,broken\n", "4\n5,five,more\n"],
    "json": ['{"id": 1, "name": "one"}\n{"id": 2, "name": "two"}\n',
             '{"id": 3, "name": "three"}\n{"id": "x"}\n',
             '{"id": 4\n{"id": 5, "name": "five"}\n'],
    "xml": ["<rows><row><id>1</id><name>one</name></row><row><id>2</id><name>two</name></row></rows>",
            "<rows><row><id>3</id><name>three</name></row><row><id>x</id><name>broken</name></row></rows>",
            "<rows><row><id>5</id><name>five</name></row><row><id>y</id></row></rows>"],
}  # fmt: skip
# The rows that can be read, per file; and the raw records that cannot.
READABLE = {"csv": [2, 1, 0], "json": [2, 1, 1], "xml": [2, 1, 1]}
BROKEN = {
    "csv": ["x,broken", "4", "5,five,more"],
    "json": ['{"id": "x"}', '{"id": 4'],
    "xml": ["<row><id>x</id><name>broken</name></row>", "<row><id>y</id></row>"],
}


def _parsing(sandbox: Sandbox, format: str, policy: str) -> None:
    options = "options: {rowTag: row}" if format == "xml" else "options: {}"
    sandbox.pipeline(
        "parsed",
        _spec(f'schema: "id INT, name STRING", malformed: {policy}, {options}', format),
        out_ddl="id INT, name STRING",
        transform_sql="SELECT id, name FROM rows",
    )


@pytest.mark.sampled
@pytest.mark.conformance("SRC-11")
@pytest.mark.fault("F24", "delta")
@pytest.mark.parametrize("format", ["csv", "json", "xml"])
@pytest.mark.parametrize("policy", ["quarantine", "drop"])
def test_corrupt_and_partial_records_are_put_aside_or_counted(
    sandbox: Sandbox, format: str, policy: str
) -> None:
    _parsing(sandbox, format, policy)
    for wave, (text, readable) in enumerate(zip(RECORDS[format], READABLE[format], strict=True)):
        sandbox.land(f"landing/rows/{wave}.{format}", text)
        counts = sandbox.run("parsed").counts
        assert (counts.read, counts.fed, counts.malformed) == (2, readable, 2 - readable)
    good = [(1, "one"), (2, "two"), (3, "three"), (5, "five")]
    assert sandbox.delta("tables/out") == good[: sum(READABLE[format])]
    aside = sandbox.quarantined("parsed")
    kept = BROKEN[format] if policy == "quarantine" else []
    payloads = [row["payload"] for row in aside]
    # Of XML, Spark gives the whole document around an element that it could not read.
    assert len(payloads) == len(kept)
    assert all(any(record in payload for payload in payloads) for record in kept)
    assert {tuple(row["reasons"]) for row in aside} <= {("malformed",)}
    assert all(row["file"].endswith(f".{format}") for row in aside)


@pytest.mark.conformance("SRC-11")
def test_a_corrupt_record_fails_the_run_where_the_policy_says_so(sandbox: Sandbox) -> None:
    _parsing(sandbox, "csv", "fail")
    sandbox.land("landing/rows/1.csv", RECORDS["csv"][0])
    sandbox.run("parsed")
    broken = sandbox.land("landing/rows/2.csv", RECORDS["csv"][1])
    error = sandbox.drain("parsed")[0].error
    assert error is not None
    assert (error.id, type(error)) == ("source.malformed", SourceError)
    assert error.what.endswith("1 malformed record"), "the record itself only where `samples:` shows it"
    assert sandbox.delta("tables/out") == [(1, "one"), (2, "two")]

    # The batch is planned: it keeps its file, and goes through once the data are fixed.
    broken.write_text("3,three\n4,four\n")
    sandbox.run("parsed")
    assert sandbox.delta("tables/out") == [(1, "one"), (2, "two"), (3, "three"), (4, "four")]
