"""git-sync puts each commit into a folder of its own, and moves a link: what runs leave stays."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_commands import DRAWDOWN
from tests.support.dag_project import DagProject


def deploy(commit: Path, link: Path) -> None:
    """As git-sync does it: the link names the old folder or the new one, never none."""
    aside = link.with_name("aside")
    aside.symlink_to(commit)
    aside.rename(link)


def run(link: Path, state: Path) -> None:
    done = subprocess.run(
        [*DRAWDOWN, "run", "events"],
        env={**os.environ, "DRAWDOWN_PROJECT": str(link), "DRAWDOWN_STATE": str(state)},
        cwd=state,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.capability("OWN-06")
def test_the_next_commit_goes_on_with_the_same_checkpoint(tmp_path: Path) -> None:
    first, second = tmp_path / "worktrees" / "one", tmp_path / "worktrees" / "two"
    link, state = tmp_path / "current", tmp_path / "state"
    project = DagProject(first)
    project.pipeline("events")
    project.storage = state / "storage"
    project.land("events", 1, 2)
    deploy(first, link)
    run(link, state)
    assert project.ids("events") == [1, 2]

    shutil.copytree(first, second, symlinks=True)
    deploy(second, link)
    shutil.rmtree(first)
    project.land("events", 3)
    run(link, state)
    assert project.ids("events") == [1, 2, 3]
    assert [path.name for path in state.iterdir() if path.suffix == ".db"] == ["metastore.db"]
    assert not (second / "metastore.db").exists()
    assert not (second / "storage").exists()
