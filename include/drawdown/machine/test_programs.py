"""What only the tests need of the system: the programs of PostgreSQL, for a real server of their own."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from drawdown.errors import MachineError
from drawdown.machine import debian
from drawdown.machine.progress import step

LOG = Path(__file__).resolve().parents[3] / ".drawdown" / "logs" / "setup.log"


def has_postgres() -> bool:
    """Whether initdb is there: on PATH, or where Debian puts it."""
    return shutil.which("initdb") is not None or any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


def main() -> int:
    """Install PostgreSQL where allowed; else say what to install."""
    if has_postgres():
        return 0
    if debian.can_install():
        with step("Installing PostgreSQL for the tests", LOG):
            debian.install("postgresql")
        if has_postgres():
            return 0
    missing = MachineError(
        "tests.no-postgres",
        "the tests need the programs of PostgreSQL, and initdb is not there",
        do="apt-get install postgresql",
    )
    print(missing, file=sys.stderr)
    return missing.exit_code


if __name__ == "__main__":
    sys.exit(main())
