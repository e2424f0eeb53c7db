"""`drawdown jars fetch`: each thing that can be wrong is one error, and nothing half-done is left."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from drawdown.jvm.home import HOME
from drawdown.jvm.jars import read_lock
from tests.support.command_line import DRAWDOWN

STATE = Path(__file__).parents[2] / ".drawdown"


def fetch(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DRAWDOWN, "jars", "fetch", *arguments],
        env={**os.environ, HOME: str(home), **environment},
        cwd=home.parent,
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = fetch(tmp_path / "file")
    assert (done.returncode, done.stdout) == (8, "")
    assert "jars.not-writable" in done.stderr
    assert HOME in done.stderr
    assert "Traceback" not in done.stderr


def test_without_java_nothing_is_made(tmp_path: Path) -> None:
    done = fetch(tmp_path / "home", JAVA_HOME=str(tmp_path / "nowhere"))
    assert done.returncode == 8
    assert "java.home-wrong" in done.stderr
    assert not (tmp_path / "home").exists()


def test_a_copy_with_other_content_is_not_taken_and_the_copy_stays(tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    first = read_lock()[0]
    shutil.copytree(STATE / first.folder, copies)
    wrong = copies / first.file_name
    wrong.write_bytes(b"somebody else's")
    done = fetch(tmp_path / "home", "--from", str(copies))
    assert done.returncode == 8
    assert "jars.no-copy" in done.stderr
    assert wrong.name in done.stderr
    assert not list((tmp_path / "home").rglob(wrong.name))
    assert wrong.exists()


def test_a_repository_that_does_not_answer_is_one_error(tmp_path: Path) -> None:
    nowhere = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1"
    done = fetch(
        tmp_path / "home", DEFAULT_ARTIFACT_REPOSITORY="http://127.0.0.1:1/", JAVA_TOOL_OPTIONS=nowhere
    )
    assert done.returncode == 8
    assert "jars.unreachable" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "home").rglob("*.jar"))
