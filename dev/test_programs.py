"""Install what only tests need: a real PostgreSQL server, a browser, and Airflow's optional providers."""

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

_WANTED = ROOT / "tests" / "providers.txt"


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
)


def install_providers(log: Path) -> None:
    """Install what tests/providers.txt pins into PROVIDERS, unless it is installed.

    Raises:
        MachineError: ``tests.no-providers``.
    """
    stamp, wanted = PROVIDERS / "installed.txt", _WANTED.read_text()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(PROVIDERS, ignore_errors=True)
    command = [sys.executable, "-m", "uv", "pip", "install", "--no-deps", "--target", str(PROVIDERS)]
    with step("Installing Airflow's optional providers for the tests", log), log.open("ab") as output:
        done = subprocess.run([*command, "--requirement", str(_WANTED)], stdout=output, stderr=output)
    if done.returncode:
        raise MachineError(
            "tests.no-providers",
            "the packages of tests/providers.txt could not be installed",
            where=str(log),
            do="make setup-tests, when the package index can be reached",
        )
    stamp.write_text(wanted)


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
    try:
        install_providers(LOG)
    except MachineError as error:
        print(error, file=sys.stderr)
        code = error.exit_code
    return code


if __name__ == "__main__":
    sys.exit(main())
