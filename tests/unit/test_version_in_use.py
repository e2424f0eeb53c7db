"""Which version of a pipeline drains use: the folder's, or after a swap that in `next/`."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from drawdown.cli.checkpoint import _generation
from drawdown.metastore import Metastore
from drawdown.plan.fingerprint import spec_fingerprint
from drawdown.plan.rebuild import in_use, wanted
from drawdown.spec import Pipeline, load_next, load_pipeline
from tests.support.rebuilds import NAME, SPEC, live_version, next_version
from tests.support.workspace import Workspace

_TTL = timedelta(minutes=1)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Both versions; the generation in use is one that a rebuild made of `next/`."""
    found = Workspace(tmp_path / "project")
    live_version(found)
    next_version(found)
    pipeline = load_next(found.project, NAME)
    assert pipeline is not None
    with found.metastore() as metastore:
        note(metastore, pipeline, from_next=True)
    return found


def note(metastore: Metastore, pipeline: Pipeline, *, from_next: bool) -> None:
    lease = metastore.acquire(NAME, "here", "r1", _TTL)
    metastore.create_checkpoint(lease, 1, f"_drawdown/{NAME}/checkpoint-1", spec_fingerprint(pipeline))
    metastore.change_generations(lease, {1: {"rebuild": {"from_next": from_next}}})
    metastore.release(lease)


def used(workspace: Workspace) -> str:
    """The folder that drains read, below that of the pipeline."""
    own = load_pipeline(workspace.project, NAME)
    with workspace.metastore() as metastore:
        return str(in_use(workspace.project, metastore, own).folder.relative_to(own.folder))


def test_after_a_swap_it_is_the_next_one_until_that_was_moved(workspace: Workspace) -> None:
    assert used(workspace) == "next"
    folder = workspace.root / "include/pipelines" / NAME
    shutil.copytree(folder / "next", folder, dirs_exist_ok=True)
    next_version(workspace, SPEC.replace("partitions: 2", "partitions: 3"))
    assert used(workspace) == ".", "next/ has the version after that"
    assert wanted(workspace.project, NAME).state.partitions == 3
    shutil.rmtree(folder / "next")
    assert used(workspace) == "."
    assert wanted(workspace.project, NAME).folder == folder


def test_commands_about_the_checkpoint_mean_the_version_that_it_was_made_by(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace.root)
    with _generation(NAME) as generation:
        assert generation.pipeline.is_next


def test_a_mended_next_one_stays_in_use(workspace: Workspace) -> None:
    rules = workspace.root / "include/pipelines" / NAME / "next/quality.yaml"
    rules.write_text("rules: [{name: some, check: n > 0, on_fail: quarantine}]\n")
    assert used(workspace) == "next"


def test_a_generation_that_no_rebuild_made_is_the_folders(workspace: Workspace) -> None:
    with workspace.metastore() as metastore:
        lease = metastore.acquire(NAME, "here", "r2", _TTL)
        metastore.change_generations(lease, {1: {"rebuild": {}}})
        metastore.release(lease)
    assert used(workspace) == "."


def test_after_a_roll_back_it_is_the_folders_whichever_was_in_use_before(workspace: Workspace) -> None:
    """A backfill asks before each of its intervals, and hands in what it was told for the one before."""
    with workspace.metastore() as metastore:
        before = in_use(workspace.project, metastore, load_pipeline(workspace.project, NAME))
        assert before.is_next
        lease = metastore.acquire(NAME, "here", "r2", _TTL)
        metastore.change_generations(lease, {1: {"rebuild": {}}})
        metastore.release(lease)
        assert not in_use(workspace.project, metastore, before).is_next
