"""Local servers that do not come up: each ends with its log's last words, and leaves no process."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from drawdown.errors import MachineError
from drawdown.testing.servers import kafka as broker
from drawdown.testing.servers import postgres
from drawdown.testing.servers.kafka import KafkaServer
from drawdown.testing.servers.postgres import PostgresServer

STATE_DIR = Path(__file__).parents[2] / ".drawdown"
SLOW_JAVA = """\
case "$*" in
  *-version*) echo 'openjdk version "17.0.1"' >&2 ;;
  *StorageTool*) ;;
  *) echo waiting for a quorum; exec sleep 600 ;;
esac
"""


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder at the head of PATH, open to other users: a server may run as one of them."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    yield folder
    shutil.rmtree(folder)


def write(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_a_broker_that_never_answers_is_given_up(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(programs / "java", SLOW_JAVA)
    monkeypatch.setattr(broker, "START_TIMEOUT", 0.5)
    started = KafkaServer(tmp_path / "kafka", state_dir=STATE_DIR)
    with pytest.raises(MachineError, match="waiting for a quorum") as caught:
        started.start()
    assert caught.value.id == "broker.timeout"
    assert started.running_at() is None


@pytest.fixture
def elsewhere(programs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that has the programs of `programs` alone."""
    monkeypatch.setattr(postgres, "DEBIAN", programs / "none")
    return programs


def test_a_machine_without_postgresql_says_what_to_install(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(elsewhere))
    with pytest.raises(MachineError) as caught:
        PostgresServer()
    assert (caught.value.id, caught.value.do) == ("postgres.missing", "apt-get install postgresql")


def test_a_program_of_postgresql_that_fails_is_quoted(elsewhere: Path) -> None:
    write(elsewhere / "initdb", "echo No space left on device; exit 1")
    server = PostgresServer()
    with pytest.raises(MachineError, match="initdb failed: No space left on device") as caught:
        server.__enter__()
    assert caught.value.id == "postgres.program"
    assert not server._folder.exists()


def test_a_server_that_never_answers_is_given_up(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(elsewhere / "initdb", "exit 0")
    write(elsewhere / "postgres", "echo starting up; exec sleep 600")
    monkeypatch.setattr(postgres, "START_TIMEOUT", 0.5)
    server = PostgresServer()
    with pytest.raises(MachineError, match="starting up") as caught:
        server.__enter__()
    assert caught.value.id == "postgres.timeout"
    assert server._background.pid() is None
