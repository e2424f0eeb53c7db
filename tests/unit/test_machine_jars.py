"""The jar lock: every jar is checked by content, a wrong one is removed, a stranger too."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from drawdown.errors import MachineError
from drawdown.jvm.jars import CONNECTORS, LOCK_FILE, Jar, check_jars, jar_paths, read_lock

CONTENT = b"classes"
JAR = Jar(CONNECTORS, "org.example:thing_2.13:1.0", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def jar_file(tmp_path: Path) -> Path:
    path = JAR.path(tmp_path)
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    return path


def test_a_right_jar_is_not_missing(tmp_path: Path, jar_file: Path) -> None:
    assert check_jars(tmp_path, [JAR]) == []
    assert jar_file.exists()


def test_a_jar_that_is_not_there_is_missing(tmp_path: Path) -> None:
    assert check_jars(tmp_path, [JAR]) == [JAR]


def test_a_changed_byte_is_an_error_and_the_file_is_removed(tmp_path: Path, jar_file: Path) -> None:
    jar_file.write_bytes(CONTENT.upper())
    with pytest.raises(MachineError) as caught:
        check_jars(tmp_path, [JAR])
    assert caught.value.id == "jars.checksum"
    assert JAR.coordinate in caught.value.what
    assert not jar_file.exists()


def test_a_jar_of_an_earlier_lock_is_removed(tmp_path: Path, jar_file: Path) -> None:
    stranger = jar_file.with_name("org.example_thing_2.13-0.9.jar")
    stranger.write_bytes(b"old")
    check_jars(tmp_path, [JAR])
    assert not stranger.exists()


def test_paths_of_jars_that_are_not_fetched_name_the_command(tmp_path: Path) -> None:
    with pytest.raises(MachineError) as caught:
        jar_paths(tmp_path, CONNECTORS)
    assert (caught.value.id, caught.value.do) == ("jars.missing", "make setup")


def test_the_lock_holds_exact_coordinates_with_hashes_and_no_address() -> None:
    jars = read_lock()
    assert len(set(jars)) == len(jars)
    assert all(re.fullmatch(r"[^:]+:[^:]+:[0-9][^:]*", jar.coordinate) for jar in jars)
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jar in jars)
    assert "://" not in LOCK_FILE.read_text()
