"""Set-up says what is wrong with Java and what to install; asked in a process of its own, as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BOOTSTRAP = Path(__file__).parents[2] / "dev" / "bootstrap.py"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A PATH with nothing on it: no Java, and no apt-get that could install one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def test_no_java_names_the_package_to_install(path: Path) -> None:
    failed = _set_up(path)
    assert failed.returncode == 8
    assert failed.stderr.startswith("java.missing:")
    assert "apt-get install openjdk-17-jre-headless" in failed.stderr


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402"])
def test_an_old_java_is_named_with_its_version(path: Path, version: str) -> None:
    _java(path, f"echo 'openjdk version \"{version}\"' >&2")
    failed = _set_up(path)
    assert failed.returncode == 8
    assert failed.stderr.startswith(f"java.too-old: Java {version}")
    assert str(path / "java") in failed.stderr


def test_a_java_without_the_vector_module_is_refused(path: Path) -> None:
    _java(path, '[ "$1" = --add-modules ] && exit 1; echo \'openjdk version "17.0.1"\' >&2')
    failed = _set_up(path)
    assert failed.returncode == 8
    assert failed.stderr.startswith("java.no-vector-module:")


def test_a_java_that_says_nothing_of_a_version_is_shown_with_what_it_says(path: Path) -> None:
    _java(path, "echo 'cannot open shared object file' >&2; exit 127")
    failed = _set_up(path)
    assert failed.returncode == 8
    assert failed.stderr.startswith("java.broken: it does not say its version: cannot open shared object")
    assert str(path / "java") in failed.stderr


def test_a_wrong_java_home_is_named_even_if_path_has_a_java(path: Path) -> None:
    _java(path, "echo 'openjdk version \"17.0.1\"' >&2")
    failed = _set_up(path, JAVA_HOME="/nowhere")
    assert failed.returncode == 8
    assert failed.stderr.startswith("java.home-wrong: JAVA_HOME is /nowhere")


def _java(path: Path, script: str) -> None:
    java = path / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)


def _set_up(path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PATH")}
    done = subprocess.run(
        [sys.executable, BOOTSTRAP],
        env={**environment, "PATH": str(path), **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done
