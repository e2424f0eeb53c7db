"""A run by hand that is killed: its temporary files are in one folder, which is found and removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from drawdown.cli.doctor.machine import temporary_files
from drawdown.processes.scratch import Scratch, left_over, remove_left_over
from drawdown.upkeep.leftovers import tidy_machine
from tests.support.sandbox import Sandbox
from tests.support.waiting import until

_RUN = """
import tempfile
from drawdown.spark.session import application_session
session = application_session("tests", {"spark.master": "local[1]", "spark.ui.enabled": "false"})
open(tempfile.mkstemp()[0], "w").write("of the driver")
print(session.sparkContext.parallelize([1], 1).map(lambda x: x + 1).collect(), flush=True)
input()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder for this test, and for processes that it starts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def _start(temporary: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "[2]\n"
    return process


@pytest.mark.full
def test_what_a_killed_run_leaves_is_found_and_removed(temporary: Path, sandbox: Sandbox) -> None:
    process = _start(temporary)
    [folder] = [path for path in temporary.iterdir() if not path.name.startswith("hsperfdata")]
    names = [path.name for path in folder.iterdir()]
    assert any(name.startswith("blockmgr-") for name in names)
    assert any(name.startswith("tmp") for name in names), "the driver's own"
    assert left_over() == [], "it goes on"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    until(lambda: left_over() == [folder], 30)
    [finding] = temporary_files(sandbox.project)
    assert str(folder) in finding.what
    assert finding.do == "drawdown upkeep --all"
    said = f"removed {folder}, temporary files of a run that was killed"
    assert tidy_machine(sandbox.project, dry=True) == [said]
    assert folder.exists()
    assert tidy_machine(sandbox.project, dry=False) == [said]
    assert list(temporary.iterdir()) == []


def test_a_run_that_ends_leaves_nothing_and_takes_what_others_have_left(temporary: Path) -> None:
    dead = Scratch.make()
    (dead.path / "large").write_text("of a run that is gone")
    os.close(dead.lock)
    process = _start(temporary)
    assert not dead.path.exists()
    process.communicate("\n", timeout=60)
    assert process.returncode == 0
    assert list(temporary.iterdir()) == []


def test_a_folder_is_in_use_as_long_as_any_process_of_its_run(temporary: Path) -> None:
    scratch = Scratch.make()
    survivor = subprocess.Popen(["sleep", "60"], env=scratch.environment(os.environ))
    assert left_over() == []
    os.close(scratch.lock)
    assert remove_left_over() == []
    survivor.kill()
    survivor.wait()
    assert remove_left_over() == [scratch.path]


def test_folders_for_spark_that_the_machine_names_get_one_of_the_run_each(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [tmp_path / "fast", tmp_path / "large"]
    monkeypatch.setenv("SPARK_LOCAL_DIRS", ",".join(map(str, places)))
    scratch = Scratch.make()
    ours = [place / scratch.path.name for place in places]
    assert scratch.environment(os.environ)["SPARK_LOCAL_DIRS"] == ",".join(map(str, ours))
    assert all(folder.is_dir() for folder in ours)
    assert left_over() == []
    os.close(scratch.lock)
    assert remove_left_over() == sorted([scratch.path, *ours])
    assert not any(folder.exists() for folder in ours)
