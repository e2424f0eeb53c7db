"""Which version of a pipeline drains use: the folder's, or after a swap that in `next/`."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from drawdown.cli.commands.maintenance.checkpoint import _generation
from drawdown.metastore import Metastore
from drawdown.plan.fingerprint import spec_fingerprint
from drawdown.plan.version_in_use import in_use, wanted
from drawdown.spec import Pipeline, load_next, load_pipeline
from drawdown.workspace import Workspace
from tests.support.rebuilds import NAME, SPEC, Hourly

_TTL = timedelta(minutes=1)


@pytest.fixture
def hourly(tmp_path: Path) -> Hourly:
    """Both versions; the generation in use is one that a rebuild made of `next/`."""
    found = Hourly(tmp_path / "project")
    found.live_version()
    found.next_version()
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


def used(hourly: Hourly) -> str:
    """The folder that drains read, below that of the pipeline."""
    own = load_pipeline(hourly.project, NAME)
    with hourly.metastore() as metastore:
        return str(in_use(Workspace(hourly.project, metastore), own).folder.relative_to(own.folder))


def test_after_a_swap_it_is_the_next_one_until_that_was_moved(hourly: Hourly) -> None:
    assert used(hourly) == "next"
    folder = hourly.root / "include/pipelines" / NAME
    shutil.copytree(folder / "next", folder, dirs_exist_ok=True)
    hourly.next_version(SPEC.replace("partitions: 2", "partitions: 3"))
    assert used(hourly) == ".", "next/ has the version after that"
    assert wanted(hourly.project, NAME).state.partitions == 3
    shutil.rmtree(folder / "next")
    assert used(hourly) == "."
    assert wanted(hourly.project, NAME).folder == folder


def test_commands_about_the_checkpoint_mean_the_version_that_it_was_made_by(
    hourly: Hourly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hourly.root)
    with _generation(NAME) as generation:
        assert generation.pipeline.is_next


def test_a_fixed_next_one_stays_in_use(hourly: Hourly) -> None:
    rules = hourly.root / "include/pipelines" / NAME / "next/quality.yaml"
    rules.write_text("rules: [{name: some, check: n > 0, on_fail: quarantine}]\n")
    assert used(hourly) == "next"


def test_a_generation_that_no_rebuild_made_is_the_folders(hourly: Hourly) -> None:
    with hourly.metastore() as metastore:
        lease = metastore.acquire(NAME, "here", "r2", _TTL)
        metastore.change_generations(lease, {1: {"rebuild": {}}})
        metastore.release(lease)
    assert used(hourly) == "."


def test_after_a_roll_back_it_is_the_folders_whichever_was_in_use_before(hourly: Hourly) -> None:
    """A backfill asks before each of its intervals, and hands in what it was told for the one before."""
    with hourly.metastore() as metastore:
        before = in_use(Workspace(hourly.project, metastore), load_pipeline(hourly.project, NAME))
        assert before.is_next
        lease = metastore.acquire(NAME, "here", "r2", _TTL)
        metastore.change_generations(lease, {1: {"rebuild": {}}})
        metastore.release(lease)
        assert not in_use(Workspace(hourly.project, metastore), before).is_next
