"""Background commands: a guard ends the whole family, and a family dies with its owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from drawdown.errors import MachineError
from drawdown.processes.background import Background

ESCAPEE = (
    "import subprocess, time; subprocess.Popen(['sleep', {tag!r}], start_new_session=True); time.sleep(600)"
)


@pytest.fixture
def tag(tmp_path: Path) -> str:
    """A number of seconds that names this test's sleepers in the process list."""
    return f"600.{abs(hash(str(tmp_path))) % 10**9:09d}"


def test_stop_ends_a_process_that_moved_to_a_session_of_its_own(tmp_path: Path, tag: str) -> None:
    background = Background("family", tmp_path, grace=1.0)
    background.start([sys.executable, "-c", ESCAPEE.format(tag=tag)], os.environ)
    _until(lambda: _sleepers(tag))
    background.stop()
    assert not _sleepers(tag)
    assert background.pid() is None


def test_the_family_ends_with_its_command(tmp_path: Path, tag: str) -> None:
    program = ESCAPEE.format(tag=tag).replace("time.sleep(600)", "time.sleep(0.5)")
    background = Background("short", tmp_path, grace=1.0)
    background.start([sys.executable, "-c", program], os.environ)
    _until(lambda: background.pid() is None)
    assert not _sleepers(tag)


def test_the_family_ends_when_its_owner_is_killed(tmp_path: Path, tag: str) -> None:
    owner = _start_owner(tmp_path, tag, detached=False)
    _until(lambda: _sleepers(tag))
    owner.kill()
    owner.wait()
    _until(lambda: not _sleepers(tag))


def test_a_detached_family_outlives_its_owner_and_another_process_stops_it(tmp_path: Path, tag: str) -> None:
    owner = _start_owner(tmp_path, tag, detached=True)
    _until(lambda: _sleepers(tag))
    owner.kill()
    owner.wait()
    time.sleep(0.5)
    assert _sleepers(tag)
    Background("owned", tmp_path, grace=1.0).stop()
    assert not _sleepers(tag)


def test_a_command_that_ignores_sigterm_is_killed(tmp_path: Path, tag: str) -> None:
    deaf = (
        "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"os.execvp('sleep', ['sleep', {tag!r}])"
    )
    background = Background("deaf", tmp_path, grace=0.5)
    background.start([sys.executable, "-c", deaf], os.environ)
    _until(lambda: _sleepers(tag))
    background.stop()
    assert not _sleepers(tag)


def test_a_second_start_is_refused_and_names_the_process(tmp_path: Path) -> None:
    background = Background("once", tmp_path, grace=1.0)
    background.start(["sleep", "600"], os.environ)
    try:
        with pytest.raises(MachineError) as caught:
            Background("once", tmp_path).start(["sleep", "600"], os.environ)
        assert caught.value.id == "machine.running"
        assert str(background.pid()) in caught.value.what
    finally:
        background.stop()


def test_a_pid_file_of_another_process_with_the_same_number_is_not_believed(tmp_path: Path) -> None:
    background = Background("stale", tmp_path)
    background.pid_file.write_text(f"{os.getpid()} 1\n")
    assert background.pid() is None
    background.stop()
    assert not background.pid_file.exists()


def test_a_command_that_dies_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    background = Background("doomed", tmp_path)
    background.start(["sh", "-c", "echo the disk is full; exit 3"], os.environ)
    _until(lambda: background.pid() is None)
    with pytest.raises(MachineError, match="the disk is full") as caught:
        background.require_alive()
    assert caught.value.id == "machine.died"
    assert caught.value.where == str(tmp_path / "doomed.log")


def _start_owner(folder: Path, tag: str, *, detached: bool) -> subprocess.Popen[bytes]:
    program = (
        "import os, sys, time; from pathlib import Path; "
        "from drawdown.processes.background import Background; "
        f"Background('owned', Path({str(folder)!r}), grace=1.0).start("
        f"[sys.executable, '-c', {ESCAPEE.format(tag=tag)!r}], os.environ, detached={detached}); "
        "time.sleep(600)"
    )
    return subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": "include"})


def _sleepers(tag: str) -> list[int]:
    found = []
    for command in (process / "cmdline" for process in Path("/proc").glob("[0-9]*")):
        try:
            if command.read_bytes().split(b"\0")[:2] == [b"sleep", tag.encode()]:
                found.append(int(command.parent.name))
        except OSError:
            continue
    return found


def _until(condition, seconds: float = 60.0) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def test_the_guard_reports_the_exit_code_of_its_command() -> None:
    guard = Path("include/drawdown/processes/guard.py")
    for command, code in (("exit 7", 7), ("kill -9 $$", 128 + signal.SIGKILL)):
        guarded = [sys.executable, "-I", guard, "1", "DETACHED", "sh", "-c", command]
        done = subprocess.run(guarded, check=False)
        assert done.returncode == code
