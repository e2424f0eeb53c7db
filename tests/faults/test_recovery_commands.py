"""`drawdown checkpoint`: what each command says, refuses and leaves; what comes after is like the control."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.recovering import (
    CHECKPOINT,
    NAME,
    Result,
    checkpoint,
    goes_on_like,
    keep,
    land,
    mend,
    newest,
    project,
    put_back,
    refused,
    result,
    tear,
)
from tests.support.workspace import Workspace

SINKS = ["delta", pytest.param("parquet", marks=pytest.mark.full)]
Kept = tuple[Workspace, Path, Result]


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kept]:
    return {}


@pytest.fixture
def drained(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    kept: dict[str, Kept],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Workspace, Result]:
    """Two waves drained, a third has come; and what a run makes of it. Made once for each sink."""
    sink = getattr(request, "param", "delta")
    if sink not in kept:
        workspace = project(tmp_path_factory.mktemp(sink) / "project", spark, sink)
        for wave in range(2):
            land(workspace, wave)
            workspace.run(NAME)
        land(workspace, 2)
        copy = keep(workspace)
        workspace.run(NAME)
        kept[sink] = workspace, copy, result(workspace)
    workspace, copy, control = kept[sink]
    put_back(workspace, copy)
    return workspace, control


def _json(workspace: Workspace, *words: str, code: int = 0) -> Any:
    return json.loads(checkpoint(workspace, *words, "--json", code=code).stdout)


def test_show_and_verify_say_what_is_there_and_touch_nothing(drained: tuple[Workspace, Result]) -> None:
    workspace, _ = drained
    before = workspace.everything()
    shown = _json(workspace, "show")
    last = int(newest(workspace.storage / CHECKPOINT / "commits").name)
    assert shown["planned"] == shown["committed"] == {"last": last, "kept": [0, last]}
    assert shown["sources"] == {"events": {"logOffset": 3}}
    assert shown["metastore"]["last_batch"] == last
    assert shown["metastore"]["batches"] == {"published": last + 1}
    assert shown["sink"] == {"output": last, "quarantine": -1}
    assert {(s["operator"], s["partition"], s["newest_version"]) for s in shown["stores"]} == {
        (0, 0, last + 1),
        (0, 1, last + 1),
    }
    assert shown["watermark"].startswith("2024-01-01 02:54")
    assert str(last) in checkpoint(workspace, "show").stdout
    assert _json(workspace, "verify") == {"pipeline": NAME, "faults": [], "do": ""}
    assert workspace.everything() == before
    old = workspace.storage / CHECKPOINT / "offsets/0"
    tear(old)
    before = workspace.everything()
    found = _json(workspace, "verify", code=3)
    assert [(f["file"], f["kind"], f["needed"]) for f in found["faults"]] == [(str(old), "torn", False)]
    assert str(old) in checkpoint(workspace, "verify", code=3).stdout
    assert workspace.everything() == before


def test_what_changes_something_is_refused_while_a_run_holds_the_lease(
    drained: tuple[Workspace, Result],
) -> None:
    workspace, _ = drained
    before = workspace.everything()
    with workspace.metastore() as metastore:
        lease = metastore.acquire(NAME, "another", "a-run", timedelta(minutes=5))
        for words in (["snapshot"], ["rewind", "--to", "0"], ["repair"], ["prune"]):
            said = checkpoint(workspace, *words, code=4).stderr
            assert "lease.held" in said
            assert "another (run a-run)" in said.replace("\n  ", " ")
        metastore.release(lease)
    assert workspace.everything() == before


@pytest.mark.parametrize("drained", SINKS, indirect=True)
def test_a_rewind_is_refused_when_the_sink_is_ahead_and_takes_it_back_when_told(
    drained: tuple[Workspace, Result],
) -> None:
    workspace, control = drained
    with workspace.metastore() as metastore:
        runs = metastore.runs(NAME)
        first = [b.batch_id for b in metastore.batches(NAME, 1) if b.run_id == runs[1].run_id]
    before = workspace.everything()
    done = checkpoint(workspace, "rewind", "--to", str(first[-1]), code=3)
    assert "sink.ahead" in done.stderr
    assert "a new pipeline folder with a sink of its own" in " ".join(done.stderr.split())
    assert workspace.everything() == before
    mend(workspace, " ".join(done.stderr.split()))
    assert _json(workspace, "show")["committed"]["last"] == first[-1]
    assert _json(workspace, "verify")["faults"] == []
    workspace.run(NAME)
    assert result(workspace) == control


def test_a_held_slice_is_rewound_and_read_again(drained: tuple[Workspace, Result]) -> None:
    """Nobody has seen it, so nothing stands in the way: here the check was wrong, not the rows."""
    workspace, control = drained
    before = int(newest(workspace.storage / CHECKPOINT / "commits").name)
    quality = workspace.root / f"include/pipelines/{NAME}/quality.yaml"
    quality.write_text(
        "expectations: [{type: expect_column_max_to_be_between, kwargs: {column: n, max_value: 1}}]\n"
    )
    refused(workspace, "audit.fail")
    quality.unlink()
    done = _json(workspace, "rewind", "--to", str(before), "--why", "the check was wrong")
    assert done["taken_back"][0] == before + 1
    goes_on_like(workspace, control)


@pytest.mark.fault("F05", "delta")
def test_a_missing_commit_of_a_published_batch_is_written_again(drained: tuple[Workspace, Result]) -> None:
    workspace, control = drained
    commit = newest(workspace.storage / CHECKPOINT / "commits")
    whole = commit.read_bytes()
    commit.unlink()
    found = _json(workspace, "verify", code=3)
    assert [(f["file"], f["kind"]) for f in found["faults"]] == [(str(commit), "missing")]
    mend(workspace, found["do"])
    assert commit.read_bytes() == whole
    goes_on_like(workspace, control)


def test_a_snapshot_from_before_the_last_run_comes_back_with_its_sink(
    drained: tuple[Workspace, Result],
) -> None:
    workspace, control = drained
    taken = _json(workspace, "snapshot", "--why", "before the migration", "--by", "ada")
    with workspace.metastore() as metastore:
        assert metastore.runs(NAME)[0].origin == {"by": "ada", "why": "before the migration"}
    workspace.run(NAME)
    before = workspace.everything()
    done = checkpoint(workspace, "restore", taken["name"], code=3)
    assert "sink.ahead" in done.stderr
    assert workspace.everything() == before
    mend(workspace, " ".join(done.stderr.split()))
    assert _json(workspace, "show")["committed"]["last"] == taken["last_batch"]
    goes_on_like(workspace, control)


def test_a_metastore_that_is_lost_is_filled_by_a_snapshot(drained: tuple[Workspace, Result]) -> None:
    workspace, control = drained
    checkpoint(workspace, "snapshot")
    (workspace.root / "metastore.db").unlink()
    error = refused(workspace, "checkpoint.unknown")
    mend(workspace, error.do.partition("lost: ")[2])
    goes_on_like(workspace, control)


def test_what_prune_removes_no_run_needs(drained: tuple[Workspace, Result]) -> None:
    workspace, control = drained
    conf = "conf: {spark.sql.streaming.minBatchesToRetain: 2}\n"
    spec = workspace.root / f"include/pipelines/{NAME}/pipeline.yaml"
    spec.write_text(spec.read_text() + conf)
    for _ in range(2):
        checkpoint(workspace, "snapshot")
    folder = workspace.storage / CHECKPOINT
    (folder / "offsets/.7.half.tmp").write_text("half")
    last = int(newest(folder / "commits").name)
    removed = _json(workspace, "prune", "--keep", "1")["removed"]
    assert sorted(int(p.name) for p in (folder / "commits").iterdir() if p.name.isdigit()) == [
        last - 1,
        last,
    ]
    assert not (folder / "offsets/.7.half.tmp").exists()
    assert len(_json(workspace, "show")["snapshots"]) == 1
    assert removed["batches"]
    assert removed["snapshots"]
    assert _json(workspace, "verify")["faults"] == []
    goes_on_like(workspace, control)
    assert _json(workspace, "prune", "--keep", "0")["removed"].keys() >= {"snapshots"}


@pytest.mark.fault("F13", "delta")
def test_a_repair_keeps_what_was_there_and_refuses_what_it_cannot_mend(
    drained: tuple[Workspace, Result],
) -> None:
    workspace, _ = drained
    file = newest(workspace.storage / CHECKPOINT / "offsets")
    tear(file)
    torn = file.read_bytes()
    done = _json(workspace, "repair")
    assert (workspace.storage / done["kept"] / file.relative_to(workspace.storage)).read_bytes() == torn
    assert not file.with_name(f".{file.name}.crc").exists(), "the stale checksum is gone, too"
    assert "checkpoint.whole" in checkpoint(workspace, "repair", code=3).stderr
    shutil.rmtree(workspace.storage / CHECKPOINT / "state")
    before = workspace.everything()
    assert "the state folder of the query is gone" in checkpoint(workspace, "repair", code=3).stderr
    assert workspace.everything() == before


@pytest.mark.fault("F16", "files")
@pytest.mark.full
@pytest.mark.parametrize("drained", ["parquet"], indirect=True)
def test_a_checkpoint_of_a_file_sink_that_is_gone_comes_back(drained: tuple[Workspace, Result]) -> None:
    workspace, control = drained
    checkpoint(workspace, "snapshot")
    shutil.rmtree(workspace.storage / CHECKPOINT)
    mend(workspace, refused(workspace, "checkpoint.missing").do)
    goes_on_like(workspace, control)


@pytest.mark.fault("F11", "files")
@pytest.mark.parametrize("drained", ["parquet"], indirect=True)
def test_a_torn_entry_of_a_file_sinks_log_is_written_again(drained: tuple[Workspace, Result]) -> None:
    workspace, control = drained
    entry = newest(workspace.storage / "tables/hourly/_spark_metadata")
    whole = entry.read_bytes()
    tear(entry)
    found = _json(workspace, "verify", code=3)
    assert found["faults"][0]["file"] == str(entry)
    mend(workspace, found["do"])
    assert entry.read_bytes() == whole, "as Spark had written it"
    goes_on_like(workspace, control)
