"""What only the tests need of the system: PostgreSQL for a real server, a browser for Airflow's pages."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from drawdown.errors import MachineError
from drawdown.machine import debian
from drawdown.machine.progress import step

LOG = Path(__file__).resolve().parents[3] / ".drawdown" / "logs" / "setup.log"


def has_postgres() -> bool:
    """Whether initdb is there: on PATH, or where Debian puts it."""
    return shutil.which("initdb") is not None or any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


def chromium() -> str | None:
    """Path of the browser; None if there is none."""
    return shutil.which("chromium")


@dataclass(frozen=True)
class Program:
    """Something of a Debian package, and how to see that it is there."""

    title: str
    package: str
    is_there: Callable[[], object]


PROGRAMS = (
    Program("PostgreSQL", "postgresql", has_postgres),
    Program("Chromium", "chromium", chromium),
)


def main() -> int:
    """Install what is missing, where allowed; else say what to install."""
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
    return code


if __name__ == "__main__":
    sys.exit(main())
