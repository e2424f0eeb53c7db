"""Values that a sink cannot keep: judged before a batch is staged, so that none blocks a passed slice."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from drawdown.kinds import Keeps
from drawdown.sinks.registry import SINKS
from tests.support.command_line import drawdown
from tests.support.database import TestDatabase
from tests.support.recovering import command_of
from tests.support.sandbox import Sandbox, multiset
from tests.support.tidying import tidied

pytestmark = pytest.mark.capability("RIGHT-08")
SPEC = """
sources:
  events: {format: json, path: landing, schema: "id INT, v STRING"}
transform: transform.sql
sink: {SINK}
"""
POSTGRES = "format: postgres, table: public.kept, schema: out.ddl"
UPDATE = f"{POSTGRES}, mode: update, keys: [v]"


def pipeline(sandbox: Sandbox, sink: str, ddl: str, expression: str) -> None:
    sandbox.pipeline(
        "kept",
        SPEC.replace("SINK", sink),
        out_ddl=f"id INT, v {ddl}",
        transform_sql=f"SELECT id, {expression} AS v FROM events",
    )


def refused(sandbox: Sandbox, id: str) -> str:
    error = sandbox.drain("kept")[0].error
    assert error is not None
    assert error.id == id, str(error)
    with sandbox.metastore() as metastore:
        assert metastore.batches("kept", 1) == [], "nothing is staged"
    return error.what


@pytest.mark.parametrize(
    ("ddl", "expression", "good", "bad"),
    [
        ("DATE", "CAST(v AS DATE)", "2024-01-01", "0000-05-01"),
        ("TIMESTAMP", "CAST(v AS TIMESTAMP)", "10000-01-01", "-0044-03-15"),
        ("ARRAY<DATE>", "array(CAST(v AS DATE))", "9999-12-31", "10000-01-01"),
        ("STRUCT<at: TIMESTAMP>", "named_struct('at', CAST(v AS TIMESTAMP))", "0001-01-01", "0000-12-31"),
        ("MAP<STRING, STRING>", "map(v, 'x')", "a", "a\\u0000"),
        ("STRING", "v", "a", "a\\u0000"),
    ],
)
def test_what_postgresql_cannot_keep(
    postgres_sandbox: Sandbox, database: TestDatabase, ddl: str, expression: str, good: str, bad: str
) -> None:
    sandbox = postgres_sandbox
    pipeline(sandbox, POSTGRES, ddl, expression)
    sandbox.land("landing/1.json", f'{{"id": 1, "v": "{bad}"}}\n', mtime=1)
    text = bad.endswith("u0000")
    said = refused(sandbox, "sink.unfit-text" if text else "sink.unfit-value")
    assert said == (
        "`v` holds the character U+0000, which postgres cannot keep"
        if text
        else "`v` holds a time outside of the years 1 to 9999 (DATE and TIMESTAMP columns also later ones)"
    )
    # The rule comes as any repair of the user's would, and the batch goes on without the row.
    folder = sandbox.root / "include/pipelines/kept"
    check = "v not like '%' || char(0) || '%'" if text else "length(v) = 10 and v >= '0001'"
    if bad.startswith("10000"):
        check = "length(v) = 10"
    elif good.startswith("10000"):
        check = "v not like '-%'"
    (folder / "quality.yaml").write_text(f'rules: [{{name: fits, check: "{check}", on_fail: quarantine}}]\n')
    sandbox.land("landing/2.json", f'{{"id": 2, "v": "{good}"}}\n', mtime=2)
    sandbox.run("kept")
    assert database.execute("SELECT id FROM kept") == [(2,)]
    assert len(sandbox.quarantined("kept")) == 1


def test_a_key_that_no_index_takes(postgres_sandbox: Sandbox, database: TestDatabase) -> None:
    sandbox = postgres_sandbox
    pipeline(sandbox, UPDATE, "STRING", "v")
    long = "".join(chr(97 + (i * i) % 26) for i in range(2_601))
    sandbox.land("landing/1.json", f'{{"id": 1, "v": "{long}"}}\n', mtime=1)
    assert refused(sandbox, "sink.unfit-value") == (
        "`v` is longer than the 2600 bytes of a key in the table's index"
    )
    pipeline(sandbox, UPDATE, "STRING", "left(v, 2600)")
    sandbox.run("kept")
    assert database.execute("SELECT length(v) FROM kept") == [(2_600,)]


@pytest.mark.parametrize(
    "sink",
    [
        "format: delta, path: tables/kept, schema: out.ddl, partition_by: [v]",
        "format: delta, path: tables/kept, schema: out.ddl, partition_by: [v], mode: update, keys: [id]",
        "format: parquet, path: tables/kept, schema: out.ddl, partition_by: [v]",
    ],
    ids=["delta", "delta update", "parquet"],
)
def test_an_empty_text_is_no_partition(sandbox: Sandbox, spark: SparkSession, sink: str) -> None:
    """Hive's folders have one name for it and for NULL."""
    pipeline(sandbox, sink, "STRING", "v")
    sandbox.land("landing/1.json", '{"id": 1, "v": ""}\n', mtime=1)
    assert "is an empty text" in refused(sandbox, "sink.unfit-value")
    pipeline(sandbox, sink, "STRING", "nullif(v, '')")
    sandbox.land("landing/2.json", '{"id": 2, "v": "b"}\n', mtime=2)
    sandbox.run("kept")
    kind = "parquet" if "parquet" in sink else "delta"
    rows = spark.read.format(kind).load(str(sandbox.storage / "tables/kept")).collect()
    assert sorted((row.id, row.v) for row in rows) == [(1, None), (2, "b")]


def test_a_passed_slice_that_a_constraint_refuses_has_a_way_on(
    postgres_sandbox: Sandbox, database: TestDatabase, tmp_path: Path
) -> None:
    sandbox = postgres_sandbox
    database.execute("CREATE TABLE kept (id INT CHECK (id < 10), v TEXT)")
    pipeline(sandbox, POSTGRES, "STRING", "v")
    sandbox.land("landing/1.json", '{"id": 1, "v": "a"}\n', mtime=1)
    sandbox.run("kept")
    sandbox.land("landing/2.json", '{"id": 11, "v": "b"}\n{"id": 2, "v": "c"}\n', mtime=2)
    for _ in range(2):
        error = sandbox.drain("kept")[0].error
        assert error is not None
        assert error.id == "sink.row-refused"
    words = command_of(error.do)
    assert words == ["checkpoint", "rewind", "kept", "--to", "0", "--sink"]
    done = drawdown(sandbox.root, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    (sandbox.root / "include/pipelines/kept/transform.sql").write_text(
        "SELECT id, v FROM events WHERE id < 10"
    )
    sandbox.run("kept")
    assert sorted(database.execute("SELECT id FROM kept")) == [(1,), (2,)]


ODD = [
    "~",
    "~x",
    "a~b",
    "a b",
    "ä",
    "%41",
    "a=b",
    "{a}",
    "a/b",
    "a\\b",
    "a\nb",
    "..",
    "a+b",
    "a:b",
    "'",
    '"',
    "*",
    "?",
    "#",
    "[",
]
ODD += [" ", ".", "NULL", "😀", "<", ">", "`", "|", "}", "^"]


@pytest.mark.parametrize("mode", ["append", pytest.param("update, keys: [id]", marks=pytest.mark.full)])
def test_partitions_of_any_name_are_compacted(sandbox: Sandbox, spark: SparkSession, mode: str) -> None:
    sink = f"format: delta, path: tables/kept, schema: out.ddl, partition_by: [v], mode: {mode}"
    pipeline(sandbox, sink, "STRING", "v")
    spec = sandbox.root / "include/pipelines/kept/pipeline.yaml"
    spec.write_text(spec.read_text().replace('STRING"}', 'STRING", options: {maxFilesPerTrigger: 1}}'))
    for wave in range(8):
        rows = [{"id": 100 * wave + n, "v": v} for n, v in enumerate(ODD)]
        sandbox.land_json(f"landing/{wave}.json", rows, mtime=wave + 1)
    sandbox.run("kept")
    before = sandbox.delta("tables/kept")
    assert {v for _, v in before} == set(ODD)
    assert len(before) == 8 * len(ODD)
    tidied(sandbox, "kept")
    assert len(DeltaTable(str(sandbox.storage / "tables/kept")).file_uris()) == len(ODD)
    assert sandbox.delta("tables/kept") == before
    assert spark._jvm is not None
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    frame = spark.read.format("delta").load(str(sandbox.storage / "tables/kept"))
    assert multiset(frame.collect()) == multiset(before)


def test_partitions_that_another_writer_named_are_left_by_a_compaction(
    sandbox: Sandbox, spark: SparkSession
) -> None:
    table = str(sandbox.storage / "tables/kept")
    sandbox.pipeline(
        "kept",
        SPEC.replace("SINK", "format: delta, path: tables/kept, schema: out.ddl, partition_by: [v]"),
        out_ddl="id INT, v STRING",
        transform_sql="SELECT id, v FROM events",
    )
    sandbox.land("landing/1.json", '{"id": 1, "v": "a"}\n', mtime=1)
    sandbox.run("kept")
    rows = spark.createDataFrame([(2, "~"), (3, "a")], "id INT, v STRING")
    for _ in range(8):
        rows.write.format("delta").mode("append").partitionBy("v").save(table)
    tidied(sandbox, "kept")
    files = DeltaTable(table).file_uris()
    assert len([file for file in files if "v=a" in file]) == 1
    assert len(files) == 9


def test_upkeep_of_tables_with_times_that_python_does_not_have(sandbox: Sandbox) -> None:
    """Their statistics name them; and no other pipeline's upkeep waits for it."""
    times = ["+10000-01-01", "-0044-03-15", "0000-01-01", "2024-01-01", "+200000-01-01"]
    for wave in range(8):
        rows = [{"id": wave, "v": at} for at in times]
        sandbox.land_json(f"landing/{wave}.json", rows, mtime=wave + 1)
    for partition in ("", ", partition_by: [d]"):
        name = "parts" if partition else "plain"
        spec = SPEC.replace(
            "SINK", f"format: delta, path: tables/{name}, time_column: t{partition}, schema: out.ddl"
        )
        sandbox.pipeline(
            name,
            spec.replace('STRING"}', 'STRING", options: {maxFilesPerTrigger: 1}}'),
            out_ddl="id INT, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ",
            transform_sql="SELECT id, CAST(v AS DATE) AS d, CAST(v AS TIMESTAMP) AS t,"
            " CAST(v AS TIMESTAMP_NTZ) AS n FROM events",
        )
        sandbox.run(name)
        assert tidied(sandbox, name).error is None
        assert len(DeltaTable(str(sandbox.storage / "tables" / name)).file_uris()) == (5 if partition else 1)
    done = drawdown(sandbox.root, "status")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_kind_says_what_it_keeps() -> None:
    limited = {kind.formats[0] for kind in SINKS.values() if kind.keeps != Keeps()}
    assert limited == {"postgres", "delta", "parquet"}
