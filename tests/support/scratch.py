"""What killed drivers leave behind in the temporary folder: in a test run it is gone with the run."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path


def make_scratch() -> Path:
    """The folder that this process, its children and every JVM among them take for the temporary one.

    pytest keeps the folders of failed tests where it always does.
    """
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    scratch = Path(tempfile.mkdtemp(prefix="drawdown-tests-"))
    os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
    # spark-submit hands this to each driver, silently.
    options = os.environ.get("SPARK_SUBMIT_OPTS", "")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{options} -Djava.io.tmpdir={scratch}".lstrip()
    return scratch


def remove_scratch(scratch: Path) -> None:
    """Also when a process that is just ending still writes there: its files are the last of it."""
    shutil.rmtree(scratch, ignore_errors=True)
