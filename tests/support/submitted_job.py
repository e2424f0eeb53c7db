"""A spark-submit behind the wrapper, started as Airflow starts it: from a task in a group of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

JOB = Path(__file__).with_name("looping_job.py")

TASK = """
import subprocess, sys
front = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print("front", front.pid, flush=True)
for line in front.stdout:
    print(line, end="", flush=True)
sys.exit(front.wait())
"""


class SubmittedJob:
    """task -> front -> guard -> JVM -> driver; all of it is killed when the context ends."""

    def __init__(self, tmp_path: Path, *job_arguments: str, grace: float = 20, **environment: str) -> None:
        self.log = tmp_path / "task.log"
        self.folder = tmp_path / "run"
        self.folder.mkdir(mode=0o700)
        self._command = [
            sys.executable, "-m", "drawdown.launch.submit", "--master", "local[1]",
            "--conf", "spark.ui.enabled=false", str(JOB), *(job_arguments or ("0",)),
        ]  # fmt: skip
        self._environment = {
            **os.environ,
            "DRAWDOWN_RUN_FOLDER": str(self.folder),
            "DRAWDOWN_STOP_GRACE": str(grace),
            **environment,
        }

    def __enter__(self) -> SubmittedJob:
        with self.log.open("wb") as stream:
            self.task = subprocess.Popen(
                [sys.executable, "-c", TASK, *self._command],
                env=self._environment,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        self.wait_for_line("the job is looping")
        self.front = int(self.lines()[0].split()[1])
        [self.guard] = children(self.front)
        [self.jvm] = children(self.guard)
        self.family = {pid: started(pid) for pid in below(self.task.pid)}
        return self

    def __exit__(self, *_: object) -> None:
        for pid in [*self.alive(), self.task.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.task.wait()

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    def wait_for_line(self, wanted: str, seconds: float = 90) -> None:
        deadline = time.monotonic() + seconds
        while wanted not in self.lines():
            assert self.task.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def alive(self) -> list[int]:
        """Processes of this run that still run, and whatever else is in the guard's session."""
        stats = all_stats()
        same = [pid for pid, when in self.family.items() if pid in stats and stats[pid][3] == when]
        in_session = [pid for pid, stat in stats.items() if stat[2] == self.guard]
        return sorted({pid for pid in [*same, *in_session] if stats[pid][0] != "Z"})

    def seconds_until_gone(self, limit: float) -> float:
        begun = time.monotonic()
        while self.alive():
            assert time.monotonic() - begun < limit, f"left: {[command(pid) for pid in self.alive()]}"
            time.sleep(0.05)
        return time.monotonic() - begun


def all_stats() -> dict[int, tuple[str, int, int, int]]:
    """pid -> state, parent, session, start time (proc(5))."""
    found = {}
    for path in (process / "stat" for process in Path("/proc").glob("[0-9]*")):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        found[int(path.parent.name)] = (fields[0], int(fields[1]), int(fields[3]), int(fields[19]))
    return found


def started(pid: int) -> int:
    return all_stats()[pid][3]


def children(pid: int) -> list[int]:
    return [child for child, stat in all_stats().items() if stat[1] == pid]


def below(pid: int) -> list[int]:
    return [found for child in children(pid) for found in (child, *below(child))]


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")[:120]
