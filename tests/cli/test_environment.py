"""A machine on which a command cannot work: a named cause and exit code 8, or a quiet end; never "a bug"."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from drawdown.cli.doctor.machine import interpreter
from tests.support.command_line import DRAWDOWN, drawdown
from tests.support.sandbox import Sandbox


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("environment")
    assert drawdown(root, "init", "sales").returncode == 0
    return root


def _typed(project: Path, line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A line of a shell, in which `$D` is the command."""
    script = project / "drawdown.sh"
    script.write_text(f'#!/bin/bash\nexec {DRAWDOWN[0]} {DRAWDOWN[1]} "{DRAWDOWN[2]}" "$@"\n')
    script.chmod(0o700)
    return subprocess.run(
        ["/bin/bash", "-c", line],
        cwd=project,
        env={**os.environ, **environment, "D": str(script)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("environment", "error_id"),
    [
        ({"JAVA_HOME": "/nowhere"}, "java.home-wrong"),
        ({"JAVA_TOOL_OPTIONS": "-XX:NoSuchOption"}, "java.options-wrong"),
        ({"PATH": ""}, "spark.no-shell"),
        ({"SPARK_HOME": "/nowhere"}, "spark.home-wrong"),
        # Spark has the JVM ignore options that it does not know.
        ({"SPARK_SUBMIT_OPTS": "-Xmsmany"}, "spark.not-started"),
    ],
)
@pytest.mark.sampled
def test_a_spark_that_cannot_start_is_the_machines_fault(
    project: Path, environment: dict[str, str], error_id: str
) -> None:
    done = _typed(project, "$D run sales", **environment)
    assert done.returncode == 8, done.stderr
    assert f"{error_id}: " in done.stderr
    assert next(iter(environment)) in done.stderr
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("$D validate >&-", 0, ""),
        ("$D validate --json > /dev/full", 8, "cli.output"),
        ("$D --help > /dev/full", 8, "cli.output"),
        ("$D validate nosuch 2> /dev/full", 2, ""),
        ("$D validate nosuch 2>&-", 2, ""),
        ("$D validate --json <&- | true; exit ${PIPESTATUS[0]}", 1, ""),
    ],
)
def test_an_output_that_is_closed_or_full_is_no_bug(project: Path, line: str, code: int, said: str) -> None:
    done = _typed(project, line)
    assert done.returncode == code, done.stderr
    assert said in done.stderr if said else not done.stderr


def test_doctor_says_which_folder_keeps_other_users_out(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = sandbox.root / "home"
    closed.mkdir(mode=0o700)
    python = closed / "python"
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    [found] = interpreter()
    assert found.level == "warn"
    assert "which no other user may enter" in found.what
