"""The part of set-up that runs inside the virtual environment: jars, and the driver's class archive."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from drawdown.errors import DrawdownError
from drawdown.machine.archive import is_settled, make_archive
from drawdown.machine.jars import check_jars, fetch_jars, read_lock
from drawdown.machine.own_jar import is_made, make_own_jar
from drawdown.machine.progress import step


def set_up(project_root: Path) -> None:
    """Fetch what is missing of the locked jars, check all, make our own jar and the archive if there is none.

    Raises MachineError ``jars.*``, ``java.*`` or ``setup.own-jar``. A failed archive is said and otherwise
    ignored: it saves seconds and nothing depends on it.
    """
    state_dir = project_root / ".drawdown"
    logs = state_dir / "logs"
    if missing := check_jars(state_dir, read_lock()):
        with step(f"Fetching {len(missing)} jars", logs / "setup.log"):
            fetch_jars(state_dir, missing)
    if not is_made(project_root):
        with step("Compiling Drawdown's own Java classes", logs / "setup.log"):
            make_own_jar(project_root)
    if not is_settled(project_root):
        with step("Training the driver's class archive", logs / "archive.log"):
            made = make_archive(project_root)
        if not made:
            print(f"  It was not made (see {logs / 'archive.log'}); runs start some seconds slower.")
            print("  To try again: rm -r .drawdown/archive && make setup")


def main() -> int:
    """Set up the project this library was installed from; prints errors without a trace."""
    started = time.monotonic()
    root = Path(__file__).resolve().parents[3]
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
