"""Records that are no UTF-8 are malformed: kept byte by byte, shown as text, replayed as they came."""

from __future__ import annotations

import base64
import json

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import functions as F

from drawdown.errors import SourceError
from tests.support.command_line import drawdown
from tests.support.set_aside import NAME, replay, rows
from tests.support.tidying import tidied
from tests.support.workspace import Workspace

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
    workspace: Workspace, format: str = "json", schema: str = "schema: events.ddl", **files: str
) -> None:
    workspace.pipeline(NAME, SPEC.replace("FORMAT", format).replace("SCHEMA", schema), **{**FILES, **files})


def land(workspace: Workspace, name: str, content: bytes) -> None:
    folder = workspace.storage / "landing/events"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f".{name}").write_bytes(content)
    (folder / f".{name}").rename(folder / name)


def shown(workspace: Workspace, *command: str) -> str:
    done = drawdown(workspace.root, "quarantine", *command)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_json_record_of_other_bytes_is_kept_shown_and_replayed(workspace: Workspace) -> None:
    pipeline(workspace)
    land(workspace, "a.json", b'{"id": 1, "v": "a"}\n' + BAD + b"\n")
    run = workspace.run(NAME)
    assert (run.counts.fed, run.counts.malformed) == (1, 1)

    [row] = rows(workspace)
    assert (row.raw, row.payload) == (BAD, BAD.decode(errors="replace"))
    assert "1 row(s): 1 open" in shown(workspace, "list", NAME)
    assert "M\ufffdller" in shown(workspace, "show", NAME)
    [said] = json.loads(shown(workspace, "show", NAME, "--json"))
    assert base64.b64decode(said["raw"]) == BAD

    assert replay(workspace).origin["left"] == {"malformed": 1}, "what it says is not known"
    assert replay(workspace, patch=("id = 7",)).origin["left"] == {"malformed": 1}
    pipeline(workspace, schema="schema: events.ddl, options: {encoding: ISO-8859-1}")
    assert replay(workspace).counts.replayed == 1
    assert workspace.delta("tables/out") == [(1, "a"), (2, "Müller")]


def test_a_patch_takes_the_place_of_what_could_not_be_read(workspace: Workspace) -> None:
    pipeline(workspace)
    land(workspace, "a.json", BAD + b"\n")
    workspace.run(NAME)
    assert replay(workspace, patch=("v = 'Mueller'",)).counts.replayed == 1
    assert workspace.delta("tables/out") == [(2, "Mueller")]


def test_a_line_of_other_bytes_is_set_aside_and_a_patch_decodes_it(workspace: Workspace) -> None:
    pipeline(
        workspace,
        "text",
        "options: {wholetext: false}",
        out_ddl="v STRING",
        transform_sql="SELECT value AS v FROM events",
    )
    land(workspace, "a.txt", b"plain\n" + LATIN + b"\n")
    run = workspace.run(NAME)
    assert (run.counts.fed, run.counts.malformed, run.counts.balanced) == (1, 1, True)
    assert workspace.delta("tables/out") == [("plain",)]
    assert rows(workspace)[0].raw == LATIN
    assert replay(workspace).counts.replayed == 0
    decoded = "value = decode(cast(value as binary), 'ISO-8859-1')"
    assert replay(workspace, patch=(decoded,)).counts.replayed == 1
    assert workspace.delta("tables/out") == [("Müller",), ("plain",)]


def test_a_text_column_of_a_parquet_file_may_hold_other_bytes(workspace: Workspace) -> None:
    assert workspace.spark is not None
    pipeline(workspace, "parquet")
    made = workspace.spark.range(2).select(
        F.col("id").cast("int").alias("id"),
        F.when(F.col("id") == 1, F.lit(LATIN).cast("string")).otherwise("a").alias("v"),
    )
    made.coalesce(1).write.parquet(str(workspace.storage / "landing/events"))
    run = workspace.run(NAME)
    assert (run.counts.fed, run.counts.malformed) == (1, 1)
    assert workspace.delta("tables/out") == [(0, "a")]
    assert replay(workspace).counts.replayed == 0
    assert replay(workspace, patch=("v = 'Müller'",)).counts.replayed == 1
    assert workspace.delta("tables/out") == [(0, "a"), (1, "Müller")]


def test_a_table_of_before_is_given_the_bytes_and_is_tidied(workspace: Workspace) -> None:
    pipeline(workspace)
    land(workspace, "a.json", b'{"id": "x", "v": "a"}\n')
    workspace.run(NAME)
    folder = str(workspace.storage / "quarantine" / NAME)
    old = DeltaTable(folder).to_pyarrow_table().drop_columns(["raw"])
    write_deltalake(folder, old, mode="overwrite", schema_mode="overwrite")
    [before] = rows(workspace)
    land(workspace, "b.json", BAD + b"\n")
    workspace.run(NAME)
    assert {row.raw for row in rows(workspace)} == {None, BAD}
    assert before.key in {row.key for row in rows(workspace)}, "what was decided about it still holds"
    tidied(workspace, NAME)
    assert {row.raw for row in rows(workspace)} == {None, BAD}


@pytest.mark.parametrize(("policy", "kept"), [("drop", 0), ("quarantine", 1)])
def test_a_text_source_may_say_what_becomes_of_them(workspace: Workspace, policy: str, kept: int) -> None:
    text = f"malformed: {policy}"
    pipeline(workspace, "text", text, transform_sql="SELECT 1 AS id, value AS v FROM events")
    land(workspace, "a.txt", b"one\n" + LATIN + b"\n")
    run = workspace.run(NAME)
    assert (run.counts.fed, run.counts.malformed, run.counts.balanced) == (1, 1, True)
    assert len(rows(workspace)) == kept


def test_a_text_source_may_end_the_run_for_them(workspace: Workspace) -> None:
    pipeline(workspace, "text", "malformed: fail", transform_sql="SELECT 1 AS id, value AS v FROM events")
    land(workspace, "a.txt", b"one\n" + LATIN + b"\n")
    with pytest.raises(SourceError, match=r"source\.malformed"):
        workspace.run(NAME)
    out = str(workspace.storage / "tables/out")
    assert not DeltaTable.is_deltatable(out) or workspace.delta("tables/out") == []
