"""What a command used until its end, with every process it has started."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MEGABYTE = 1024**2


@dataclass(frozen=True)
class Usage:
    """Of one run of a command.

    Attributes:
        seconds: from its start to its end.
        core_seconds: user and system time of all its processes (wait4(2) counts those that were waited for).
        megabytes: the most that the largest of its processes held.
        said: standard output and error.
    """

    seconds: float
    core_seconds: float
    megabytes: float
    said: str


def used_by(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    done: str | None = None,
) -> Usage:
    """Run it in a folder; it must succeed.

    Args:
        done: what it says when its work is done: then it may end as it likes.
    """
    log = folder / "said.txt"
    begun = time.monotonic()
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
        )
        _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    said = log.read_text(errors="replace")
    if process.returncode and (done is None or done not in said):
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{said[-3000:]}")
    return Usage(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / MEGABYTE, said)
