"""The drain job with a moment to die at: SIGKILL of driver and JVM right before or after one call.

    dying_job.py PROJECT PIPELINE before|after CALL NTH

CALL is a method of Metastore, or of one of the classes in MOMENTS; the NTH call (from 1) is the last.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import wraps
from pathlib import Path
from typing import Any

from drawdown.application import Application
from drawdown.engine.sinks import DeltaSink, NativeFileSink
from drawdown.metastore import Metastore
from drawdown.publishing.delta_table import DeltaTableFiles
from drawdown.spec import load_pipeline, load_project

MOMENTS: dict[str, tuple[type, str]] = {
    "delta.write": (DeltaSink, "write"),
    "files.write": (NativeFileSink, "write"),
    "delta.append": (DeltaTableFiles, "append"),
    "delta.merge": (DeltaTableFiles, "merge"),
    "delta.overwrite": (DeltaTableFiles, "overwrite"),
}


def die_at(when: str, call: str, nth: int) -> None:
    owner, name = MOMENTS.get(call, (Metastore, call))
    original = getattr(owner, name)
    calls = 0

    @wraps(original)
    def last_call(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if when == "before" and calls == nth:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        result = original(*args, **kwargs)
        if when == "after" and calls == nth:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        return result

    setattr(owner, name, last_call)


if __name__ == "__main__":
    root, name, when, call, nth = sys.argv[1:]
    die_at(when, call, int(nth))
    project = load_project(Path(root))
    with Metastore.open(project.metastore_url) as metastore:
        Application(project, metastore).drain_all([load_pipeline(project, name)])
