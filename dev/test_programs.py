"""Install what only tests need: PostgreSQL, a browser, Prometheus, a C compiler, providers, an S3 server."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dev import debian
from dev.progress import step
from drawdown.errors import MachineError
from drawdown.testing.servers.postgres import DEBIAN

ROOT = Path(__file__).resolve().parents[1]
LOG = ROOT / ".drawdown" / "logs" / "setup.log"
PROVIDERS = ROOT / ".drawdown" / "tests" / "providers"
"""Airflow's providers of pyproject.toml's extras, outside the environment that runs everything else."""

MOTO = ROOT / ".drawdown" / "tests" / "moto"
"""The packages of an S3 server in memory, run by ``tests.support.s3_servers`` as a process of its own."""


def has_postgres() -> bool:
    """Whether initdb exists: on PATH, or where Debian puts it."""
    return shutil.which("initdb") is not None or any(DEBIAN.glob("*/bin/initdb"))


def chromium() -> str | None:
    """Return the path of the browser; None if there is none."""
    return shutil.which("chromium")


@dataclass(frozen=True)
class Program:
    """A program of a Debian package, and how to find out whether it is installed."""

    title: str
    package: str
    is_there: Callable[[], object]


PROGRAMS = (
    Program("PostgreSQL", "postgresql", has_postgres),
    Program("Chromium", "chromium", chromium),
    Program("a C compiler", "build-essential", lambda: shutil.which("gcc")),
    Program("Prometheus", "prometheus", lambda: shutil.which("promtool")),
)


@dataclass(frozen=True)
class PackageFolder:
    """Packages of a pinned list, installed outside the environment that runs everything else.

    Attributes:
        missing: the error's id when they cannot be installed.
        options: of ``uv pip install``.
    """

    title: str
    missing: str
    folder: Path
    pinned: Path
    options: tuple[str, ...]

    def install(self, log: Path) -> None:
        """Install the list, unless exactly this list is installed. Raises MachineError."""
        stamp, wanted = self.folder / "installed.txt", self.pinned.read_text()
        if stamp.exists() and stamp.read_text() == wanted:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        command = [sys.executable, "-m", "uv", "pip", "install", *self.options, "--target", str(self.folder)]
        with step(f"Installing {self.title} for the tests", log), log.open("ab") as output:
            done = subprocess.run(
                [*command, "--requirement", str(self.pinned)], stdout=output, stderr=output, check=False
            )
        if done.returncode:
            raise MachineError(
                self.missing,
                f"the packages of tests/{self.pinned.name} could not be installed",
                where=str(log),
                do="make setup-tests, when the package index can be reached",
            )
        stamp.write_text(wanted)


PACKAGES = (
    PackageFolder(
        "Airflow's optional providers",
        "tests.no-providers",
        PROVIDERS,
        ROOT / "tests" / "providers.txt",
        ("--no-deps",),
    ),
    PackageFolder("an S3 server", "tests.no-moto", MOTO, ROOT / "tests" / "moto.txt", ("--require-hashes",)),
)


def main() -> int:
    """Install what is missing, if allowed; else say what to install."""
    code = 0
    for program in PROGRAMS:
        if not program.is_there() and debian.can_install():
            with step(f"Installing {program.title} for the tests", LOG):
                debian.install(program.package)
        if not program.is_there():
            missing = MachineError(
                f"tests.no-{program.package}",
                f"the tests need {program.title}, and it is not there",
                do=f"apt-get install {program.package}",
            )
            print(missing, file=sys.stderr)
            code = missing.exit_code
    for packages in PACKAGES:
        try:
            packages.install(LOG)
        except MachineError as error:
            print(error, file=sys.stderr)
            code = error.exit_code
    return code


if __name__ == "__main__":
    sys.exit(main())
