"""`drawdown rename`: all that a pipeline has goes on under its new name, and no row comes twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.metastore.records import Run
from tests.support.deaths import die
from tests.support.older_release import CLOSED, OPEN, WRITTEN_AT, unpacked
from tests.support.sandbox import Sandbox
from tests.support.typed import refusal, typed

FAILING = "expectations: [{type: expect_table_row_count_to_equal, kwargs: {value: -1}}]\n"


@pytest.fixture
def clicks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A pipeline with state, a table and a quarantine; two windows are still open."""
    sandbox = unpacked(tmp_path / "project")
    monkeypatch.chdir(sandbox.root)
    typed("metastore", "upgrade")
    typed("checkpoint", "move", "clicks", "--from", WRITTEN_AT)
    typed("checkpoint", "snapshot", "clicks")
    return sandbox


def rename_folder(sandbox: Sandbox, new: str = "visits", first: str = "clicks") -> None:
    folder = sandbox.root / "include/pipelines"
    (folder / "clicks").rename(folder / new)
    spec = folder / new / "pipeline.yaml"
    spec.write_text(f"first_name: {first}\n{spec.read_text()}")


def kept(sandbox: Sandbox, name: str) -> dict[str, object]:
    """What metastore and storage have under a name, without the name."""
    with sandbox.metastore() as metastore:
        [checkpoint] = metastore.generations(name)
        batches = metastore.batches(name, 1)
        files = metastore.staged_files(name, 1, [batch.batch_id for batch in batches])
        runs = [run.run_id for run in metastore.runs(name) if run.kind == "drain"]
        lease = metastore.acquire(name, "a test", "a-run", sandbox.project.lease_ttl.delta)
        metastore.release(lease)
    folder = sandbox.storage / "_drawdown" / name
    there = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    return {
        "checkpoint": checkpoint.path.replace(name, "NAME"),
        "batches": [(batch.batch_id, batch.status, batch.run_id) for batch in batches],
        "files": [(batch, file.path.replace(f"_drawdown/{name}/", "NAME/")) for batch, file in files],
        "runs": runs,
        "folder": there,
        "quarantine": len(list((sandbox.storage / "quarantine" / name).rglob("*"))),
    }


def is_whole(sandbox: Sandbox) -> None:
    """Nothing is left of the old name, and the snapshot speaks of the new one."""
    assert not (sandbox.storage / "_drawdown/clicks").exists()
    assert not (sandbox.storage / "quarantine/clicks").exists()
    [manifest] = (sandbox.storage / "_drawdown/visits/snapshots").glob("*/snapshot.json")
    noted = manifest.read_text()
    assert '"pipeline": "visits"' in noted
    assert '"pipeline": "clicks"' not in noted
    assert "_drawdown/clicks" not in noted
    with sandbox.metastore() as metastore:
        assert metastore.names() == {"visits"}
        assert metastore.open_runs("visits") == []
        assert metastore.holder_of("visits") is None


@pytest.mark.capability("OWN-07")
def test_everything_is_kept_under_the_new_name(clicks: Sandbox) -> None:
    before = kept(clicks, "clicks")
    rename_folder(clicks)
    typed("rename", "clicks", "visits", "--why", "they are visits")
    is_whole(clicks)
    after = kept(clicks, "visits")
    assert after == before
    typed("checkpoint", "verify", "visits")
    with clicks.metastore() as metastore:
        run = next(run for run in metastore.runs("visits") if run.kind == "rename")
    assert (run.state, run.origin["why"], run.origin["from"]) == ("succeeded", "they are visits", "clicks")


def test_what_cannot_be_renamed_is_refused_and_left_alone(clicks: Sandbox) -> None:
    before = clicks.snapshot()
    folder = clicks.root / "include/pipelines"
    shutil.copytree(folder / "clicks", folder / "other")
    assert refusal("rename", "clicks", "other").id == "rename.folder"
    shutil.rmtree(folder / "clicks")
    assert refusal("rename", "clicks", "other").id == "rename.first-name"
    assert refusal("rename", "nobody", "other").id == "rename.unknown"
    (folder / "other").rename(folder / "clicks")
    rename_folder(clicks)
    (clicks.storage / "_drawdown/visits").mkdir()
    theirs = clicks.storage / "_drawdown/visits/theirs"
    theirs.write_text("")
    assert refusal("rename", "clicks", "visits").id == "rename.taken"
    shutil.rmtree(theirs.parent)
    with clicks.metastore() as metastore:
        lease = metastore.acquire("clicks", "a run", "r9", clicks.project.lease_ttl.delta)
        assert refusal("rename", "clicks", "visits").id == "lease.held"
        metastore.release(lease)
        metastore.start_run(Run("r9", "clicks"))
    assert refusal("rename", "clicks", "visits").id == "rename.open-run"
    assert clicks.snapshot() == before


@pytest.mark.parametrize(
    "moment",
    [
        "before rename.copy 5",
        "after rename.switch",
        pytest.param("before rename.switch", marks=pytest.mark.full),
        pytest.param("after rename.remove 1", marks=pytest.mark.full),
    ],
)
def test_cut_off_anywhere_the_same_command_completes_it(clicks: Sandbox, moment: str) -> None:
    before = kept(clicks, "clicks")
    rename_folder(clicks)
    die(clicks, "visits", moment, "rename clicks")
    typed("rename", "clicks", "visits")
    is_whole(clicks)
    assert kept(clicks, "visits") == before


@pytest.mark.capability("OWN-07")
def test_the_renamed_pipeline_goes_on_with_state_and_a_held_slice(
    clicks: Sandbox, spark: SparkSession
) -> None:
    clicks.spark = spark
    clicks.land_json("landing/clicks/c.json", [{"at": "2026-01-01T10:09:00Z", "page": "a"}])
    quality = clicks.root / "include/pipelines/clicks/quality.yaml"
    quality.write_text(FAILING)
    assert clicks.drain("clicks")[0].error is not None
    quality.unlink()
    rename_folder(clicks)
    error = clicks.drain("visits")[0].error
    assert error is not None
    assert error.id == "rename.not-done"
    typed("rename", "clicks", "visits")
    typed("release", "visits", "--why", "a test")
    assert windows(clicks) == [*CLOSED, *OPEN]
    clicks.land_json("landing/clicks/d.json", [{"at": "2026-01-01T10:20:00Z", "page": "b"}])
    assert clicks.run("visits").counts.read == 1
    assert windows(clicks) == [*CLOSED, *OPEN, ("10:09", "a", 1)]
    spec = clicks.root / "include/pipelines/visits/pipeline.yaml"
    spec.write_text(spec.read_text().replace("first_name: clicks\n", ""))
    clicks.land_json("landing/clicks/e.json", [{"at": "2026-01-01T10:30:00Z", "page": "b"}])
    error = clicks.drain("visits")[0].error
    assert error is not None
    assert (error.id, "sink.name" in error.what) == ("checkpoint.changed", True)


def windows(sandbox: Sandbox) -> list[tuple[str, str, int]]:
    return [(f"{minute:%H:%M}", page, count) for minute, page, count in sandbox.delta("tables/clicks")]
