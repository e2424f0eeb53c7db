"""`drawdown checkpoint`: what each command says, refuses and leaves; what comes after is like the control."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from drawdown.checkpoint import CheckpointFiles
from drawdown.checkpoint.state_files import StateFiles
from drawdown.storage import Storage
from tests.support.command_line import answer
from tests.support.recovering import (
    CHECKPOINT,
    NAME,
    Result,
    checkpoint,
    fix,
    goes_on_like,
    keep,
    land,
    newest,
    project,
    put_back,
    refused,
    result,
    tear,
)
from tests.support.sandbox import Sandbox

SINKS = ["delta", pytest.param("parquet", marks=pytest.mark.full)]
Kept = tuple[Sandbox, Path, Result]


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kept]:
    return {}


@pytest.fixture
def drained(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    kept: dict[str, Kept],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Sandbox, Result]:
    """Two waves drained, a third has come; and what a run makes of it. Made once for each sink."""
    sink = getattr(request, "param", "delta")
    if sink not in kept:
        sandbox = project(tmp_path_factory.mktemp(sink) / "project", spark, sink)
        for wave in range(2):
            land(sandbox, wave)
            sandbox.run(NAME)
        land(sandbox, 2)
        copy = keep(sandbox)
        sandbox.run(NAME)
        kept[sink] = sandbox, copy, result(sandbox)
    sandbox, copy, control = kept[sink]
    put_back(sandbox, copy)
    return sandbox, control


def _json(sandbox: Sandbox, *words: str, code: int = 0) -> Any:
    return answer(checkpoint(sandbox, *words, "--json", code=code).stdout)


@pytest.mark.full
def test_show_and_verify_say_what_is_there_and_touch_nothing(drained: tuple[Sandbox, Result]) -> None:
    sandbox, _ = drained
    before = sandbox.everything()
    shown = _json(sandbox, "show")
    last = int(newest(sandbox.storage / CHECKPOINT / "commits").name)
    assert shown["planned"] == shown["committed"] == {"last": last, "kept": [0, last]}
    assert shown["sources"] == {"events": {"logOffset": 3}}
    assert shown["metastore"]["last_batch"] == last
    assert shown["metastore"]["batches"] == {"published": last + 1}
    assert shown["sink"] == {"output": last, "quarantine": None}
    assert {(s["operator"], s["partition"], s["newest_version"]) for s in shown["stores"]} == {
        (0, 0, last + 1),
        (0, 1, last + 1),
    }
    assert shown["watermark"].startswith("2024-01-01 02:54")
    assert str(last) in checkpoint(sandbox, "show").stdout
    assert _json(sandbox, "verify") == {"pipeline": NAME, "faults": [], "do": ""}
    assert sandbox.everything() == before
    old = sandbox.storage / CHECKPOINT / "offsets/0"
    tear(old)
    before = sandbox.everything()
    found = _json(sandbox, "verify", code=3)
    assert [(f["file"], f["kind"], f["needed"]) for f in found["faults"]] == [(str(old), "torn", False)]
    done = checkpoint(sandbox, "verify", code=3)
    assert str(old) in done.stdout
    assert "checkpoint.torn" in done.stderr
    assert sandbox.everything() == before


def test_what_changes_something_is_refused_while_a_run_holds_the_lease(
    drained: tuple[Sandbox, Result],
) -> None:
    sandbox, _ = drained
    before = sandbox.everything()
    with sandbox.metastore() as metastore:
        lease = metastore.acquire(NAME, "another", "a-run", timedelta(minutes=5))
        for words in (["snapshot"], ["rewind", "--to", "0"], ["repair"], ["prune"]):
            said = checkpoint(sandbox, *words, code=4).stderr
            assert "lease.held" in said
            assert "another (run a-run)" in said.replace("\n  ", " ")
        metastore.release(lease)
    assert sandbox.everything() == before


@pytest.mark.parametrize("drained", SINKS, indirect=True)
def test_a_rewind_is_refused_when_the_sink_is_ahead_and_takes_it_back_when_told(
    drained: tuple[Sandbox, Result],
) -> None:
    sandbox, control = drained
    with sandbox.metastore() as metastore:
        runs = metastore.runs(NAME)
        first = [b.batch_id for b in metastore.batches(NAME, 1) if b.run_id == runs[1].run_id]
    before = sandbox.everything()
    done = checkpoint(sandbox, "rewind", "--to", str(first[-1]), code=3)
    assert "sink.ahead" in done.stderr
    assert "a new pipeline folder with its own sink" in " ".join(done.stderr.split())
    assert sandbox.everything() == before
    fix(sandbox, " ".join(done.stderr.split()))
    assert _json(sandbox, "show")["committed"]["last"] == first[-1]
    assert _json(sandbox, "verify")["faults"] == []
    sandbox.run(NAME)
    assert result(sandbox) == control


def test_a_held_slice_is_rewound_and_read_again(drained: tuple[Sandbox, Result]) -> None:
    """Nobody has seen it, so nothing stands in the way: here the check was wrong, not the rows."""
    sandbox, control = drained
    before = int(newest(sandbox.storage / CHECKPOINT / "commits").name)
    quality = sandbox.root / f"include/pipelines/{NAME}/quality.yaml"
    quality.write_text(
        "expectations: [{type: expect_column_max_to_be_between, kwargs: {column: n, max_value: 1}}]\n"
    )
    refused(sandbox, "audit.fail")
    quality.unlink()
    done = _json(sandbox, "rewind", "--to", str(before), "--why", "the check was wrong")
    assert done["taken_back"][0] == before + 1
    stores = StateFiles.read(Storage(str(sandbox.storage)), CHECKPOINT).stores.values()
    assert max(version for store in stores for version, _ in store.files()) == before + 1
    files = CheckpointFiles(Storage(str(sandbox.storage)), CHECKPOINT)
    [source] = files.offsets(before).offsets
    assert newest(sandbox.storage / CHECKPOINT / "sources/0").name == str(source["logOffset"])
    goes_on_like(sandbox, control)


@pytest.mark.fault("F05", "delta")
def test_a_missing_commit_of_a_published_batch_is_written_again(drained: tuple[Sandbox, Result]) -> None:
    sandbox, control = drained
    commit = newest(sandbox.storage / CHECKPOINT / "commits")
    whole = commit.read_bytes()
    commit.unlink()
    found = _json(sandbox, "verify", code=3)
    assert [(f["file"], f["kind"]) for f in found["faults"]] == [(str(commit), "missing")]
    fix(sandbox, found["do"])
    assert commit.read_bytes() == whole
    goes_on_like(sandbox, control)


def test_a_snapshot_from_before_the_last_run_comes_back_with_its_sink(
    drained: tuple[Sandbox, Result],
) -> None:
    sandbox, control = drained
    taken = _json(sandbox, "snapshot", "--why", "before the migration", "--by", "ada")
    with sandbox.metastore() as metastore:
        assert metastore.runs(NAME)[0].origin == {"by": "ada", "why": "before the migration"}
    sandbox.run(NAME)
    before = sandbox.everything()
    done = checkpoint(sandbox, "restore", taken["name"], code=3)
    assert "sink.ahead" in done.stderr
    assert sandbox.everything() == before
    fix(sandbox, " ".join(done.stderr.split()))
    assert _json(sandbox, "show")["committed"]["last"] == taken["last_batch"]
    goes_on_like(sandbox, control)


def test_a_metastore_that_is_lost_is_filled_by_a_snapshot(drained: tuple[Sandbox, Result]) -> None:
    sandbox, control = drained
    checkpoint(sandbox, "snapshot")
    (sandbox.root / "metastore.db").unlink()
    error = refused(sandbox, "checkpoint.unknown")
    fix(sandbox, error.do.partition("lost: ")[2])
    goes_on_like(sandbox, control)


def test_what_prune_removes_no_run_needs(drained: tuple[Sandbox, Result]) -> None:
    sandbox, control = drained
    conf = "conf: {spark.sql.streaming.minBatchesToRetain: 2}\n"
    spec = sandbox.root / f"include/pipelines/{NAME}/pipeline.yaml"
    spec.write_text(spec.read_text() + conf)
    for _ in range(2):
        checkpoint(sandbox, "snapshot")
    folder = sandbox.storage / CHECKPOINT
    (folder / "offsets/.7.half.tmp").write_text("half")
    last = int(newest(folder / "commits").name)
    removed = _json(sandbox, "prune", "--keep", "1")["removed"]
    assert sorted(int(p.name) for p in (folder / "commits").iterdir() if p.name.isdigit()) == [
        last - 1,
        last,
    ]
    assert not (folder / "offsets/.7.half.tmp").exists()
    assert len(_json(sandbox, "show")["snapshots"]) == 1
    assert removed["batches"]
    assert removed["snapshots"]
    assert _json(sandbox, "verify")["faults"] == []
    goes_on_like(sandbox, control)
    assert _json(sandbox, "prune", "--keep", "0")["removed"].keys() >= {"snapshots"}


@pytest.mark.fault("F13", "delta")
def test_a_repair_keeps_what_was_there_and_refuses_what_it_cannot_fix(
    drained: tuple[Sandbox, Result],
) -> None:
    sandbox, _ = drained
    file = newest(sandbox.storage / CHECKPOINT / "offsets")
    tear(file)
    torn = file.read_bytes()
    done = _json(sandbox, "repair")
    assert (sandbox.storage / done["kept"] / file.relative_to(sandbox.storage)).read_bytes() == torn
    assert not file.with_name(f".{file.name}.crc").exists(), "the stale checksum is gone, too"
    assert "checkpoint.whole" in checkpoint(sandbox, "repair", code=3).stderr
    shutil.rmtree(sandbox.storage / CHECKPOINT / "state")
    before = sandbox.everything()
    assert "the state folder of the query is missing" in checkpoint(sandbox, "repair", code=3).stderr
    assert sandbox.everything() == before


@pytest.mark.fault("F16", "files")
@pytest.mark.full
@pytest.mark.parametrize("drained", ["parquet"], indirect=True)
def test_a_checkpoint_of_a_file_sink_that_is_gone_comes_back(drained: tuple[Sandbox, Result]) -> None:
    sandbox, control = drained
    checkpoint(sandbox, "snapshot")
    shutil.rmtree(sandbox.storage / CHECKPOINT)
    fix(sandbox, refused(sandbox, "checkpoint.missing").do)
    goes_on_like(sandbox, control)


@pytest.mark.full
@pytest.mark.fault("F11", "files")
@pytest.mark.parametrize("drained", ["parquet"], indirect=True)
def test_a_torn_entry_of_a_file_sinks_log_is_written_again(drained: tuple[Sandbox, Result]) -> None:
    sandbox, control = drained
    entry = newest(sandbox.storage / "tables/hourly/_spark_metadata")
    whole = entry.read_bytes()
    tear(entry)
    found = _json(sandbox, "verify", code=3)
    assert found["faults"][0]["file"] == str(entry)
    fix(sandbox, found["do"])
    assert entry.read_bytes() == whole, "as Spark had written it"
    goes_on_like(sandbox, control)
