"""Install what Spark's JVM needs: the locked jars, Drawdown's own jar, the driver's class archive.

`make setup` and `drawdown jars fetch` call it. Called again, it adds only what is missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from drawdown.errors import MachineError
from drawdown.jvm.class_archive import is_settled, make_archive
from drawdown.jvm.home import HOME
from drawdown.jvm.jars import check_jars, copy_jars, fetch_jars, read_lock
from drawdown.jvm.own_jar import is_made, make_own_jar
from drawdown.jvm.spark_home import spark_home
from drawdown.values.text import counted

Step = Callable[[str, Path], AbstractContextManager[None]]
"""Shows that a step with this text is running, and appends its output to this log."""


def prepare(root: Path, step: Step, copies: Path | None = None) -> bool:
    """Put everything below ``root/.drawdown``; return False when the class archive has just failed.

    A class archive only makes runs start faster, so its failure is no error: ``.drawdown/logs/archive.log``
    has the reason, and it is not tried again.

    Args:
        copies: take the jars from this folder, not from the network.

    Raises:
        MachineError: ``jars.*``, ``java.*``, ``spark.missing`` or ``setup.own-jar``.
    """
    spark_home()
    state_dir = root / ".drawdown"
    logs = state_dir / "logs"
    _require_writable(state_dir)
    if missing := check_jars(state_dir, read_lock()):
        with step(f"Fetching {counted(len(missing), 'jar')}", logs / "setup.log"):
            if copies is None:
                fetch_jars(state_dir, missing)
            else:
                copy_jars(state_dir, missing, copies)
    if not is_made(root):
        with step("Compiling Drawdown's own Java classes", logs / "setup.log"):
            make_own_jar(root)
    if is_settled(root):
        return True
    with step("Training the driver's class archive", logs / "archive.log"):
        return make_archive(root)


def _require_writable(state_dir: Path) -> None:
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        cause = error.strerror or str(error)
    else:
        if os.access(state_dir, os.W_OK):
            return
        cause = "this user may not write there"
    raise MachineError(
        "jars.not-writable",
        f"jars cannot be put there: {cause}",
        where=str(state_dir),
        do=f"run it as the user who installed Drawdown; or set {HOME} to a folder, here and for Airflow",
    )
