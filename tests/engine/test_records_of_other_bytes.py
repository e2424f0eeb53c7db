"""Records that are no UTF-8 are malformed: kept byte by byte, shown as text, replayed as they came."""

from __future__ import annotations

import base64

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import functions as F

from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import SourceError, TransformError
from drawdown.metastore.records import Run
from drawdown.upkeep.compaction import Compacted
from tests.support.command_line import answer, drawdown
from tests.support.replays import drain_days, replayed
from tests.support.sandbox import Sandbox
from tests.support.set_aside import NAME, replay, rows
from tests.support.tidying import tidied

SPEC = """
sources:
  events: {format: FORMAT, path: landing/events, SCHEMA}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
state: {partitions: 2}
"""
FILES = {
    "events_ddl": "id INT, v STRING",
    "out_ddl": "id INT, v STRING",
    "transform_sql": "SELECT id, v FROM events",
}
LATIN = "Müller".encode("latin-1")
BAD = b'{"id": 2, "v": "' + LATIN + b'"}'


def pipeline(
    sandbox: Sandbox, format: str = "json", schema: str = "schema: events.ddl", **files: str
) -> None:
    sandbox.pipeline(NAME, SPEC.replace("FORMAT", format).replace("SCHEMA", schema), **{**FILES, **files})


def land(sandbox: Sandbox, name: str, content: bytes) -> None:
    folder = sandbox.storage / "landing/events"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f".{name}").write_bytes(content)
    (folder / f".{name}").rename(folder / name)


def land_and_run(sandbox: Sandbox, name: str, content: bytes) -> Run:
    land(sandbox, name, content)
    return sandbox.run(NAME)


def shown(sandbox: Sandbox, *command: str) -> str:
    done = drawdown(sandbox.root, "quarantine", *command)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.full
def test_a_json_record_of_other_bytes_is_kept_shown_and_replayed(sandbox: Sandbox) -> None:
    pipeline(sandbox)
    run = land_and_run(sandbox, "a.json", b'{"id": 1, "v": "a"}\n' + BAD + b"\n")
    assert (run.counts.fed, run.counts.malformed) == (1, 1)

    [row] = rows(sandbox)
    assert (row.raw, row.payload) == (BAD, BAD.decode(errors="replace"))
    assert "1 row: 1 open" in shown(sandbox, "list", NAME)
    assert "M\ufffdller" in shown(sandbox, "show", NAME)
    [said] = answer(shown(sandbox, "show", NAME, "--json"))
    assert base64.b64decode(said["raw"]) == BAD

    assert replay(sandbox).origin["left"] == {"malformed": 1}, "what it says is not known"
    assert replay(sandbox, patch=("id = 7",)).origin["left"] == {"malformed": 1}
    pipeline(sandbox, schema="schema: events.ddl, options: {encoding: ISO-8859-1}")
    assert replay(sandbox).counts.replayed == 1
    assert sandbox.delta("tables/out") == [(1, "a"), (2, "Müller")]


def test_a_patch_takes_the_place_of_what_could_not_be_read(sandbox: Sandbox) -> None:
    pipeline(sandbox)
    land_and_run(sandbox, "a.json", BAD + b"\n")
    assert replay(sandbox, patch=("v = 'Mueller'",)).counts.replayed == 1
    assert sandbox.delta("tables/out") == [(2, "Mueller")]


def test_a_line_of_other_bytes_is_set_aside_and_a_patch_decodes_it(sandbox: Sandbox) -> None:
    pipeline(
        sandbox,
        "text",
        "options: {wholetext: false}",
        out_ddl="v STRING",
        transform_sql="SELECT value AS v FROM events",
    )
    run = land_and_run(sandbox, "a.txt", b"plain\n" + LATIN + b"\n")
    assert (run.counts.fed, run.counts.malformed, run.counts.balanced) == (1, 1, True)
    assert sandbox.delta("tables/out") == [("plain",)]
    assert rows(sandbox)[0].raw == LATIN
    assert replay(sandbox).counts.replayed == 0
    decoded = "value = decode(cast(value as binary), 'ISO-8859-1')"
    assert replay(sandbox, patch=(decoded,)).counts.replayed == 1
    assert sandbox.delta("tables/out") == [("Müller",), ("plain",)]


def test_a_text_column_of_a_parquet_file_may_hold_other_bytes(sandbox: Sandbox) -> None:
    assert sandbox.spark is not None
    pipeline(sandbox, "parquet")
    made = sandbox.spark.range(2).select(
        F.col("id").cast("int").alias("id"),
        F.when(F.col("id") == 1, F.lit(LATIN).cast("string")).otherwise("a").alias("v"),
    )
    made.coalesce(1).write.parquet(str(sandbox.storage / "landing/events"))
    run = sandbox.run(NAME)
    assert (run.counts.fed, run.counts.malformed) == (1, 1)
    assert sandbox.delta("tables/out") == [(0, "a")]
    assert replay(sandbox).counts.replayed == 0
    assert replay(sandbox, patch=("v = 'Müller'",)).counts.replayed == 1
    assert sandbox.delta("tables/out") == [(0, "a"), (1, "Müller")]


NESTED = {
    "a STRUCT<v: STRING, n: INT>": "named_struct('v', V, 'n', 1)",
    "b ARRAY<STRUCT<v: STRING>>": "array(named_struct('v', 'a'), NULL, named_struct('v', V))",
    "c MAP<STRING, ARRAY<STRING>>": "map('k', array('a', NULL, V))",
    "d MAP<STRING, INT>": "map(V, 1)",
}


@pytest.mark.full
def test_text_inside_a_column_may_hold_other_bytes(sandbox: Sandbox) -> None:
    assert sandbox.spark is not None
    ddl = f"id INT, {', '.join(NESTED)}"
    pipeline(
        sandbox, "parquet", events_ddl=ddl, out_ddl=ddl, transform_sql="SELECT id, a, b, c, d FROM events"
    )
    text = ["'a'", "'a'", "'a'", "'a'"]
    selects = ["SELECT CAST(9 AS INT) AS id, NULL AS a, NULL AS b, NULL AS c, NULL AS d"]
    for number in range(5):
        values = [f"cast(X'{LATIN.hex()}' AS STRING)" if n == number else each for n, each in enumerate(text)]
        columns = [made.replace("V", value) for made, value in zip(NESTED.values(), values, strict=True)]
        selects.append(f"SELECT CAST({number} AS INT), {', '.join(columns)}")
    made = sandbox.spark.sql(" UNION ALL ".join(selects))
    made.coalesce(1).write.parquet(str(sandbox.storage / "landing/events"))
    run = sandbox.run(NAME)
    assert (run.counts.fed, run.counts.malformed, run.counts.balanced) == (2, 4, True)
    assert [row[0] for row in sandbox.delta("tables/out")] == [4, 9]
    assert replay(sandbox).counts.replayed == 0
    assert replay(sandbox, patch=("b = NULL",)).counts.replayed == 1
    assert [row[0] for row in sandbox.delta("tables/out")] == [1, 4, 9]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("sink", "made"),
    [
        ("{format: delta, path: tables/out, schema: out.ddl}", "cast(unhex(v) AS STRING)"),
        pytest.param(
            "{format: delta, path: tables/out, schema: deep.ddl}",
            "named_struct('deep', array(cast(unhex(v) AS STRING)))",
            marks=pytest.mark.full,
        ),
        ("{format: parquet, path: tables/out}", "cast(unhex(v) AS STRING)"),
    ],
)
def test_text_that_a_transform_makes_of_other_bytes_is_refused(
    sandbox: Sandbox, sink: str, made: str
) -> None:
    def write(made: str) -> None:
        sql = f"SELECT id, {made} AS v FROM events"
        sandbox.pipeline(
            NAME,
            SPEC.replace("FORMAT", "json").replace("SCHEMA", "schema: events.ddl").split("sink:")[0]
            + f"sink: {sink}\n",
            **{**FILES, "deep_ddl": "id INT, v STRUCT<deep: ARRAY<STRING>>", "transform_sql": sql},
        )

    write(made)
    land_and_run(sandbox, "a.json", b'{"id": 1, "v": "41"}\n')
    land(sandbox, "b.json", b'{"id": 2, "v": "' + LATIN.hex().encode() + b'"}\n')
    with pytest.raises(TransformError) as error:
        sandbox.run(NAME)
    assert (error.value.id, error.value.what) == ("sink.unfit-text", "`v` holds text that is no UTF-8")
    table = sandbox.storage / "tables/out"
    assert sandbox.spark is not None
    read = sandbox.spark.read.format("parquet" if "parquet" in sink else "delta").load(str(table))
    assert [row.id for row in read.collect()] == [1]
    write(made.replace("cast(unhex(v) AS STRING)", "decode(unhex(v), 'ISO-8859-1')"))
    assert sandbox.run(NAME).counts.fed == 1


@pytest.mark.full
def test_a_replay_whose_rows_hold_such_text_replaces_nothing(sandbox: Sandbox) -> None:
    drain_days(sandbox)
    before = sandbox.delta("tables/hourly")
    transform = sandbox.root / "include/pipelines/hourly/transform.sql"
    other = transform.read_text().replace(" AS hour, k,", " AS hour, cast(X'fc' AS STRING) AS k,")
    transform.write_text(other)
    with pytest.raises(TransformError, match=r"sink\.unfit-text"):
        replayed(sandbox, "2024-01-02", "2024-01-03")
    assert sandbox.delta("tables/hourly") == before


def test_a_table_of_before_is_given_the_bytes_and_is_tidied(sandbox: Sandbox) -> None:
    pipeline(sandbox)
    land_and_run(sandbox, "a.json", b'{"id": "x", "v": "a"}\n')
    folder = str(sandbox.storage / "quarantine" / NAME)
    old = DeltaTable(folder).to_pyarrow_table().drop_columns(["raw"])
    write_deltalake(folder, old, mode="overwrite", schema_mode="overwrite")
    [before] = rows(sandbox)
    land_and_run(sandbox, "b.json", BAD + b"\n")
    assert {row.raw for row in rows(sandbox)} == {None, BAD}
    assert before.key in {row.key for row in rows(sandbox)}, "what was decided about it still holds"
    tidied(sandbox, NAME)
    assert {row.raw for row in rows(sandbox)} == {None, BAD}


@pytest.mark.parametrize(("policy", "kept"), [("drop", 0), ("quarantine", 1)])
def test_a_text_source_may_say_what_becomes_of_them(sandbox: Sandbox, policy: str, kept: int) -> None:
    text = f"malformed: {policy}"
    pipeline(sandbox, "text", text, transform_sql="SELECT 1 AS id, value AS v FROM events")
    run = land_and_run(sandbox, "a.txt", b"one\n" + LATIN + b"\n")
    assert (run.counts.fed, run.counts.malformed, run.counts.balanced) == (1, 1, True)
    assert len(rows(sandbox)) == kept


def test_a_text_source_may_end_the_run_for_them(sandbox: Sandbox) -> None:
    pipeline(sandbox, "text", "malformed: fail", transform_sql="SELECT 1 AS id, value AS v FROM events")
    land(sandbox, "a.txt", b"one\n" + LATIN + b"\n")
    with pytest.raises(SourceError, match=r"source\.malformed"):
        sandbox.run(NAME)
    out = str(sandbox.storage / "tables/out")
    assert not DeltaTable.is_deltatable(out) or sandbox.delta("tables/out") == []


def as_before(sandbox: Sandbox, record: bytes) -> None:
    """The quarantine as a Drawdown that kept no bytes left it: no `raw`, and text that is no UTF-8."""
    folder = str(sandbox.storage / "quarantine" / NAME)
    old = DeltaTable(folder).to_pyarrow_table().drop_columns(["raw"])
    write_deltalake(folder, old, mode="overwrite", schema_mode="overwrite")
    text = pa.array([record] * old.num_rows, pa.binary()).view(pa.string())
    unfit = old.set_column(old.column_names.index("payload"), "payload", text)
    unfit = unfit.set_column(old.column_names.index("batch_id"), "batch_id", pa.array([0]))
    write_deltalake(folder, unfit, mode="append")


@pytest.mark.full
def test_a_quarantine_that_nobody_could_read_is_listed_shown_and_replayed(sandbox: Sandbox) -> None:
    pipeline(sandbox)
    land_and_run(sandbox, "a.json", b'{"id": "x", "v": "a"}\n')
    as_before(sandbox, BAD)

    assert "2 rows: 2 open" in shown(sandbox, "list", NAME)
    assert "M\ufffdller" in shown(sandbox, "show", NAME)
    assert {row.raw for row in rows(sandbox)} == {None, BAD}
    assert replay(sandbox).origin["left"] == {"malformed": 2}
    pipeline(sandbox, schema="schema: events.ddl, options: {encoding: ISO-8859-1}")
    assert replay(sandbox).counts.replayed == 1
    assert sandbox.delta("tables/out") == [(2, "Müller")]
    assert "1 row dropped" in shown(sandbox, "drop", NAME, "--why", "broken", "--yes")


@pytest.mark.full
def test_upkeep_makes_such_a_quarantine_readable_for_everybody(sandbox: Sandbox) -> None:
    pipeline(sandbox)
    land_and_run(sandbox, "a.json", b'{"id": "x", "v": "a"}\n')
    as_before(sandbox, BAD)
    folder = str(sandbox.storage / "quarantine" / NAME)
    alike = DeltaTable(folder, version=2).to_pyarrow_table()
    for number in range(8):
        again = alike.set_column(
            alike.column_names.index("payload"), "payload", pa.array([f'{{"id": "{number}"}}'])
        )
        write_deltalake(folder, again, mode="append")
    before = rows(sandbox)
    assert tidied(sandbox, NAME).compacted["quarantine"] == Compacted(10, 1)
    assert {row["raw"] for row in DeltaTableFiles(folder).rows(["raw"])} == {None, BAD}
    assert rows(sandbox) == before
    land_and_run(sandbox, "b.json", BAD + b"\n")
    assert len(rows(sandbox)) == len(before) + 1
