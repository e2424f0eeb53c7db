"""The part of set-up that runs inside the virtual environment: jars, and the driver's class archive."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from dev.progress import step
from drawdown.errors import DrawdownError
from drawdown.jvm.prepare import prepare


def set_up(project_root: Path) -> None:
    """Fetch missing locked jars, check all jars, make our own jar and the archive if they are missing.

    Raises MachineError ``jars.*``, ``java.*`` or ``setup.own-jar``. A failed archive is reported and
    otherwise ignored: it saves seconds and nothing depends on it.
    """
    if not prepare(project_root, step):
        log = project_root / ".drawdown" / "logs" / "archive.log"
        print(f"  It was not made (see {log}); runs start some seconds slower.")
        print("  To try again: rm -r .drawdown/archive && make setup")


def main() -> int:
    """Set up the project this library was installed from; prints errors without a trace."""
    started = time.monotonic()
    root = Path(__file__).resolve().parents[1]
    os.chdir(root)
    try:
        set_up(root)
    except DrawdownError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if time.monotonic() - started > 1:
        print("Set-up is complete.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
