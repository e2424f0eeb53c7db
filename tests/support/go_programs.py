"""Servers written in Go, built from their pinned modules the first time a test asks for one."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dev.test_programs import ROOT
from drawdown.errors import MachineError

FOLDER = ROOT / ".drawdown" / "tests" / "go"
BUILD_TIMEOUT = 1800.0


@dataclass(frozen=True)
class GoProgram:
    """A command of a Go module; the checksums of Go's own database stand for its content."""

    package: str
    version: str

    @property
    def name(self) -> str:
        """The name of the file that Go makes."""
        return self.package.rpartition("/")[2]


VERSITYGW = GoProgram("github.com/versity/versitygw/cmd/versitygw", "v1.8.0")
FAKE_GCS = GoProgram("github.com/fsouza/fake-gcs-server", "v1.56.1")


def built(program: GoProgram) -> Path:
    """Return the program's file; build it if this version was not built yet (some minutes).

    Raises MachineError ``tests.no-go`` or ``tests.go-build``.
    """
    folder = FOLDER / program.version / program.name
    file = folder / program.name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        # One of the processes that share the tests builds, the others wait.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            _build(program, folder)
    return file


def _build(program: GoProgram, folder: Path) -> None:
    if shutil.which("go") is None:
        raise MachineError(
            "tests.no-go",
            f"this test needs {program.name}, which is built by Go, and Go is not installed",
            do="apt-get install golang (1.21 or later, which fetches the version it needs)",
        )
    log = folder / "build.log"
    with log.open("wb") as output:
        done = subprocess.run(
            ["go", "install", "-trimpath", f"{program.package}@{program.version}"],
            # Outside any module; a file that is half written has another name until it is whole.
            cwd=folder,
            env={**os.environ, "GOBIN": str(folder / "new"), "GO111MODULE": "on"},
            stdout=output,
            stderr=output,
            timeout=BUILD_TIMEOUT,
            check=False,
        )
    if done.returncode:
        raise MachineError(
            "tests.go-build",
            f"{program.package}@{program.version} could not be built",
            where=str(log),
            do="read that log; most often the module proxy cannot be reached",
        )
    (folder / "new" / program.name).replace(folder / program.name)
