"""Find out why Spark did not start, after the failure, so that a successful start costs nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from drawdown.errors import MachineError
from drawdown.jvm.java import require_java


def check_launcher() -> None:
    """Check what Spark's start script needs besides Java.

    Raises:
        MachineError: ``spark.home-wrong``: SPARK_HOME leads nowhere; ``spark.no-shell``: PATH has no bash.
    """
    if (home := os.environ.get("SPARK_HOME")) and not Path(home, "bin", "spark-submit").is_file():
        raise MachineError(
            "spark.home-wrong",
            f"SPARK_HOME is {home}, and there is no bin/spark-submit in it",
            where="environment variable SPARK_HOME",
            do="unset SPARK_HOME   # uses the Spark of this Python environment",
        )
    if shutil.which("bash") is None:
        raise MachineError(
            "spark.no-shell",
            "Spark's start script needs bash, and no folder of PATH has it",
            where=f"environment variable PATH: {os.environ.get('PATH') or 'empty'}",
            do="add the system's folders: export PATH=$PATH:/usr/local/bin:/usr/bin:/bin",
        )


def why_not_started(cause: Exception) -> MachineError:
    """Return the error for a Spark that did not start: Java's or the launcher's, else what is known."""
    try:
        check_launcher()
        java = require_java()
    except MachineError as found:
        return found
    given = os.environ.get("SPARK_SUBMIT_OPTS")
    options = f"SPARK_SUBMIT_OPTS={given}" if given else "SPARK_SUBMIT_OPTS is not set"
    return MachineError(
        "spark.not-started",
        f"Spark's JVM ended before it could be reached: {str(cause).splitlines()[0]}",
        where=f"Java {java.version} at {java.executable}; {options}",
        do="read the end of .drawdown/logs/spark.log; usual causes: a `driver_memory` that the machine does"
        " not have, and options that this Java does not know",
    )
