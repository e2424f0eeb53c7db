"""The guard of one Spark application: starts it, passes its output on, asks it to stop, ends it.

Runs in a session of its own (see submit.py). In order:

1. make the leash (stop_pipe.py) and start spark-submit;
2. pass its output on until it ends, or until one of these means stop: the front's pipe is closed, the
   reader of our output is gone (a task that was killed), SIGTERM or SIGINT;
3. stop: let go of the leash and wait for spark-submit to end, for at most the grace time; the output
   still goes to whoever reads it, else nowhere, so that a driver never blocks on it;
4. kill whatever is left below, remove the run's folders, exit with spark-submit's code; with another one
   when that is 0 and the job has not said that it came to its end.
"""

from __future__ import annotations

import importlib.util
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from drawdown.launch import answer
from drawdown.launch.environment import for_spark
from drawdown.processes.descendants import adopt_orphans, descendants, kill_descendants, reap, wakeup_on
from drawdown.processes.scratch import Scratch
from drawdown.stop_pipe import LEASH

_PIPE_BUF = 4096
"""A pipe that polls writable takes this much without blocking (pipe(7))."""

_FAREWELL = 3.0
"""Seconds the rest may take to end by itself once spark-submit has ended."""

_OUT = 1

_NO_ANSWER = """application.no-answer: the driver ended before it had said how its pipelines went
  where: code of a pipeline, or a library that it uses, has ended the process
  do:    look at the lines above; `drawdown doctor` names the runs that ended without a word"""

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run(arguments: list[str], folder: Path, scratch: Scratch, front: int, grace: float) -> int:
    """Steps 1 to 4; called in a freshly forked process.

    Args:
        arguments: of spark-submit.
        folder: of this run alone; holds the leash, removed at the end.
        scratch: where the application puts its temporary files; removed at the end, too.
        front: read end of the pipe that the front holds.
        grace: seconds from being asked to stop until everything is killed.
    """
    os.setsid()
    adopt_orphans()
    wakeup = wakeup_on(*_STOP_SIGNALS, signal.SIGCHLD)
    answered = scratch.path / "answer"
    try:
        leash = folder / "leash"
        os.mkfifo(leash, 0o600)
        # Opened for both: opening a FIFO for writing alone would wait for the driver.
        held = os.open(leash, os.O_RDWR | os.O_CLOEXEC)
        child = subprocess.Popen(
            [str(_spark_home() / "bin" / "spark-submit"), *arguments],
            env=submit_environment({**os.environ, **scratch.environment(os.environ)})
            | {LEASH: str(leash), answer.ANSWER: str(answered)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert child.stdout is not None
        watch = _Watch(child.pid, child.stdout.fileno(), held, front, wakeup, grace)
        code = watch.until_ended(answered)
        _wait_for_the_rest()
        return code
    finally:
        kill_descendants()
        remove(folder)
        scratch.remove()


def submit_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What spark-submit gets, and needs to use this very environment's Spark and Python."""
    return {
        **for_spark(environment),
        "SPARK_HOME": str(_spark_home()),
        # Without these, workers and driver run whatever `python3` the PATH holds.
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Else the driver's lines come only when its buffer is full, or never.
        "PYTHONUNBUFFERED": "1",
    }


def remove(folder: Path) -> None:
    """Remove the run's folder with all it holds; harmless when it is gone."""
    shutil.rmtree(folder, ignore_errors=True)


class _Watch:
    """Step 2 and 3: one loop over everything that can happen."""

    def __init__(self, child: int, output: int, leash: int, front: int, wakeup: int, grace: float) -> None:
        self.child, self.output, self.leash, self.front, self.wakeup = child, output, leash, front, wakeup
        self.grace = grace
        self.deadline: float | None = None
        self.reader_gone = False
        self.buffer = b""

    def until_ended(self, answered: Path) -> int:
        """The exit code of spark-submit, 128 + SIGKILL when it had to be killed.

        Args:
            answered: the job makes this file as its last act; 0 without it is no success.
        """
        code: int | None = None
        while code is None:
            ready = self._poll(0.5 if self.deadline is None else 0.1)
            self._relay(ready)
            if self._asked_to_stop(ready) and self.deadline is None:
                self._let_go()
            if self.deadline is not None and time.monotonic() > self.deadline:
                self._say(f"drawdown: still running after {self.grace:g} s: killed")
                kill_descendants()
                code = 128 + signal.SIGKILL
            else:
                code = reap().get(self.child)
        self._last_lines()
        if code == 0 and not answered.exists():
            self._say(_NO_ANSWER)
            self._last_lines()
            return answer.NONE
        return code

    def _poll(self, seconds: float) -> dict[int, int]:
        poll = select.poll()
        poll.register(self.wakeup, select.POLLIN)
        if self.deadline is None:
            poll.register(self.front, select.POLLIN)
        if not self.reader_gone:
            # With no event asked for, POLLERR and POLLHUP still tell that nobody reads.
            poll.register(_OUT, select.POLLOUT if self.buffer else 0)
        if not self.buffer and self.output >= 0:
            poll.register(self.output, select.POLLIN)
        return dict(poll.poll(seconds * 1000))

    def _asked_to_stop(self, ready: Mapping[int, int]) -> bool:
        signals = set(os.read(self.wakeup, _PIPE_BUF)) if self.wakeup in ready else set()
        return self.reader_gone or self.front in ready or not signals.isdisjoint(_STOP_SIGNALS)

    def _let_go(self) -> None:
        os.close(self.leash)
        self.deadline = time.monotonic() + self.grace
        self._say(f"drawdown: asked to stop; the driver has {self.grace:g} s")

    def _relay(self, ready: Mapping[int, int]) -> None:
        if self.output in ready:
            self.buffer = os.read(self.output, _PIPE_BUF)
            if not self.buffer:
                os.close(self.output)
                self.output = -1
        if ready.get(_OUT, 0) & (select.POLLERR | select.POLLHUP):
            self.reader_gone = True
        if self.reader_gone:
            self.buffer = b""
        elif ready.get(_OUT, 0) & select.POLLOUT:
            self._write()

    def _write(self) -> None:
        try:
            self.buffer = self.buffer[os.write(_OUT, self.buffer[:_PIPE_BUF]) :]
        except BrokenPipeError:
            self.reader_gone = True
            self.buffer = b""

    def _say(self, line: str) -> None:
        """A line of our own, where a reader is left."""
        if not self.reader_gone:
            self.buffer += f"{line}\n".encode()

    def _last_lines(self) -> None:
        """What spark-submit wrote before it ended; daemons may keep the pipe open, so no end of file."""
        deadline = time.monotonic() + _FAREWELL
        while not self.reader_gone and time.monotonic() < deadline:
            if not self.buffer and self.output < 0:
                return
            ready = self._poll(0.1)
            if not self.buffer and self.output not in ready:
                return
            self._relay(ready)


def _wait_for_the_rest() -> None:
    """Workers end when they see the JVM gone; give them a moment before they are killed."""
    deadline = time.monotonic() + _FAREWELL
    while descendants() and time.monotonic() < deadline:
        time.sleep(0.05)
        reap()


def _spark_home() -> Path:
    """The folder of the pyspark package beside this interpreter, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SystemExit("machine.no-pyspark: this Python has no pyspark; do: make setup")
    return Path(spec.origin).parent
