"""The commands of docs/held.md, typed one after the other over two held slices of a Delta table."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner, Result

from drawdown.cli.main import app
from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Counts, Run, StagedFile, Verdict
from drawdown.spec import load_project

PAGE = Path(__file__).parents[2] / "docs/held.md"
PIPELINE = """
sources: {events: {format: text, path: landing}}
transform: transform.sql
sink: {format: delta, path: out, schema: out.ddl}
"""
SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Batches 0 and 1 were judged by two runs, and both are held."""
    folder = tmp_path / "include/pipelines/sales"
    folder.mkdir(parents=True)
    (tmp_path / "include/project.yaml").write_text("storage_root: storage\n")
    (folder / "pipeline.yaml").write_text(PIPELINE)
    (folder / "transform.sql").write_text("SELECT value FROM events")
    (folder / "out.ddl").write_text("id BIGINT")
    table = tmp_path / "storage/out"
    table.mkdir(parents=True)
    DeltaTableFiles(str(table)).create(SCHEMA, [], "")
    monkeypatch.chdir(tmp_path)
    with Metastore.open(load_project(tmp_path).metastore_url) as metastore:
        lease = metastore.acquire("sales", "a test", "a-run", load_project(tmp_path).lease_ttl.delta)
        metastore.create_checkpoint(lease, 1, "_drawdown/sales/checkpoint-1", {})
        for number in (0, 1):
            staged = stage(table, number)
            batch = Batch("sales", 1, number, "a-run", lease.epoch, counts=Counts(staged=1))
            metastore.note_batch(lease, batch, [staged], {})
            metastore.mark_committed(lease, 1, number)
            metastore.record_verdict(lease, Verdict("sales", 1, f"run-{number}", number, number, "fail"))
        metastore.release(lease)
    return tmp_path


def stage(table: Path, number: int) -> StagedFile:
    path = table / f"part-{number}.parquet"
    pq.write_table(pa.table({"id": pa.array([number], pa.int64())}), path)
    size = path.stat().st_size
    action = {"path": path.name, "size": size, "partitionValues": {}, "modificationTime": 1}
    return StagedFile("output", str(path), size, 1, action)


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_the_commands_of_the_page_do_what_it_says(project: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines()]
    assert [line.split()[1] for line in commands] == ["runs", "release", "discard"]
    shown, released, discarded = (typed(*shlex.split(line)[1:]) for line in commands)
    assert [result.exit_code for result in (shown, released, discarded)] == [0, 0, 0]
    assert "sales: batch 0 (1 row) has been held since" in " ".join(shown.output.split())
    assert "released 1 row of 1 batch" in released.output
    assert "discarded 1 row of 1 batch" in discarded.output
    assert DeltaTable(str(project / "storage/out")).to_pyarrow_table().column("id").to_pylist() == [0]
    assert not (project / "storage/out/part-1.parquet").exists()
    with Metastore.open(load_project(project).metastore_url) as metastore:
        discard, release = metastore.runs("sales")
    assert [discard.kind, release.kind] == ["discard", "release"]
    listed = " ".join(typed("runs", "sales").output.split())
    by, why = discard.origin["by"], discard.origin["why"]
    assert f"{discard.run_id} sales: 1 row of batch 1 discarded, by {by}: {why}" in listed
    assert f"{release.run_id} sales: 1 row of batch 0 released; 1 row became visible, by {by}: " in listed


def test_a_run_whose_audit_holds_its_slice_says_how_to_decide_and_then_who_did(project: Path) -> None:
    verdict = "FAILED: 1 of 1 expectations failed (1 row checked)"
    with Metastore.open(load_project(project).metastore_url) as metastore:
        metastore.start_run(Run("run-0", "sales", generation=1))
        error = {"id": "audit.fail", "what": f"not published: {verdict}", "where": "batch 0", "do": "decide"}
        metastore.finish_run("run-0", "failed", error=error)
        lease = metastore.acquire("sales", "a test", "again", load_project(project).lease_ttl.delta)
        metastore.record_verdict(lease, Verdict("sales", 1, "run-0", 0, 0, "fail", text=verdict))
        metastore.release(lease)
    waiting = " ".join(typed("runs", "sales", "--id", "run-0").output.split())
    assert "held: batch 0 (1 row) has been held since" in waiting
    assert "drawdown release sales --why ..." in waiting
    assert waiting.count(verdict) == 1, "in the error, and not again"
    assert typed("discard", "sales", "--batch", "0", "--why", "a test order", "--by", "ada").exit_code == 0
    decided = " ".join(typed("runs", "sales", "--id", "run-0").output.split())
    assert "decided: sales: 1 row of batch 0 discarded, by ada: a test order" in decided
    assert "has been held" not in decided


def test_a_batch_that_is_in_no_held_slice_is_refused(project: Path) -> None:
    refused = typed("release", "sales", "--batch", "7", "--why", "x").exception
    assert isinstance(refused, RefusedError)
    assert refused.id == "slice.none-held"


def test_without_a_batch_every_held_slice_is_meant_each_in_a_commit_of_its_own(project: Path) -> None:
    assert "released 2 rows of 2 batches" in typed("release", "sales", "--why", "x").output
    table = DeltaTable(str(project / "storage/out"))
    assert (table.version(), sorted(table.to_pyarrow_table().column("id").to_pylist())) == (2, [0, 1])
