"""Folders of logs and run files are their owner's alone, also those that were made for everybody before."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from dev.progress import step
from drawdown.processes.private_folder import private_folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("there", [False, True])
def test_only_the_owner_reads_it(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "logs"
    if there:
        folder.mkdir(mode=0o755)
    assert mode(private_folder(folder)) == 0o700


def test_set_up_makes_the_folder_of_its_log_private(tmp_path: Path) -> None:
    log = tmp_path / ".drawdown" / "logs" / "setup.log"
    log.parent.mkdir(parents=True, mode=0o755)
    with step("a step", log):
        pass
    assert mode(log.parent) == 0o700
