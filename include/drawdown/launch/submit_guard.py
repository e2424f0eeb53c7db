"""The guard of one Spark application: starts it, forwards its output, asks it to stop, ends it.

It runs in its own session (see submit.py). In order:

1. make the stop pipe (stop_pipe.py) and start spark-submit;
2. forward its output until it ends, or until one of these means stop: the front's pipe is closed, the
   reader of our output is gone (a task that was killed), SIGTERM or SIGINT;
3. stop: close the stop pipe and wait for spark-submit to end, for at most the grace time; the output
   still goes to its reader if there is one, else it is dropped, so that a driver never blocks on it;
4. kill the remaining descendants, remove the run's folders, exit with spark-submit's code; with another
   code when that is 0 and the job has not recorded that it finished.
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
from dataclasses import dataclass
from pathlib import Path

from drawdown.launch import answer
from drawdown.launch.environment import for_spark
from drawdown.processes.descendants import adopt_orphans, descendants, kill_descendants, reap, wakeup_on
from drawdown.processes.scratch import Scratch
from drawdown.stop_pipe import STOP_PIPE

_PIPE_BUF = 4096
"""A pipe that polls writable takes this much without blocking (pipe(7))."""

_FAREWELL = 3.0
"""Seconds that other processes get to end by themselves once spark-submit has ended."""

_OUT = 1

_NO_ANSWER = """ERROR application.no-answer: the driver ended before it had said how its pipelines went
  where: code of a pipeline, or a library that it uses, has ended the process
  do:    look at the lines above; `drawdown doctor` names the runs that ended without a word"""

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run(arguments: list[str], folder: Path, scratch: Scratch, front: int, grace: float) -> int:
    """Do steps 1 to 4, in a freshly forked process, and return the exit code.

    Args:
        arguments: spark-submit's arguments.
        folder: this run's own folder; holds the stop pipe, removed at the end.
        scratch: where the application puts its temporary files; removed at the end, too.
        front: read end of the pipe that the front holds.
        grace: seconds from being asked to stop until everything is killed.
    """
    os.setsid()
    adopt_orphans()
    wakeup = wakeup_on(*_STOP_SIGNALS, signal.SIGCHLD)
    answered = scratch.path / "answer"
    try:
        stop_pipe = folder / "stop_pipe"
        os.mkfifo(stop_pipe, 0o600)
        # Opened for reading too: opening a FIFO only for writing would wait for the driver.
        stop = os.open(stop_pipe, os.O_RDWR | os.O_CLOEXEC)
        output, written = os.pipe()
        child = subprocess.Popen(
            [str(_spark_home() / "bin" / "spark-submit"), *arguments],
            env=submit_environment({**os.environ, **scratch.environment(os.environ)})
            | {STOP_PIPE: str(stop_pipe), answer.ANSWER: str(answered)},
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
        )
        os.close(written)
        watch = _Watch(child.pid, _Descriptors(output, stop, front, wakeup), grace)
        code = watch.until_ended(answered)
        _wait_for_the_rest()
        return code
    finally:
        kill_descendants()
        remove(folder)
        scratch.remove()


def submit_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return spark-submit's environment, which makes it use this environment's Spark and Python."""
    return {
        **for_spark(environment),
        "SPARK_HOME": str(_spark_home()),
        # Without these, workers and driver run the first `python3` of the PATH.
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Otherwise the driver's lines arrive only when its buffer is full, or never.
        "PYTHONUNBUFFERED": "1",
    }


def remove(folder: Path) -> None:
    """Remove the run's folder with its content; a missing folder is no error."""
    shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class _Descriptors:
    """The guard's ends of its pipes.

    Attributes:
        output: what spark-submit writes.
        stop: the write end of the stop pipe; closing it asks the driver to stop.
        front: a pipe that ends when the front does.
        wakeup: the numbers of the signals that have arrived.
    """

    output: int
    stop: int
    front: int
    wakeup: int


class _Watch:
    """Steps 2 and 3: one loop over all events."""

    def __init__(self, child: int, pipes: _Descriptors, grace: float) -> None:
        self.child = child
        self.pipes = pipes
        self.grace = grace
        self.output_open = True
        self.deadline: float | None = None
        self.reader_gone = False
        self.buffer = b""

    def until_ended(self, answered: Path) -> int:
        """Wait for spark-submit and return its exit code, 128 + SIGKILL when it had to be killed.

        Args:
            answered: the file that the job writes as its last act; without it, 0 is not a success.
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
        poll.register(self.pipes.wakeup, select.POLLIN)
        if self.deadline is None:
            poll.register(self.pipes.front, select.POLLIN)
        if not self.reader_gone:
            # Even without a requested event, POLLERR and POLLHUP show that the reader is gone.
            poll.register(_OUT, select.POLLOUT if self.buffer else 0)
        if not self.buffer and self.output_open:
            poll.register(self.pipes.output, select.POLLIN)
        return dict(poll.poll(seconds * 1000))

    def _asked_to_stop(self, ready: Mapping[int, int]) -> bool:
        signals = set(os.read(self.pipes.wakeup, _PIPE_BUF)) if self.pipes.wakeup in ready else set()
        return self.reader_gone or self.pipes.front in ready or not signals.isdisjoint(_STOP_SIGNALS)

    def _let_go(self) -> None:
        os.close(self.pipes.stop)
        self.deadline = time.monotonic() + self.grace
        self._say(f"drawdown: asked to stop; the driver has {self.grace:g} s")

    def _relay(self, ready: Mapping[int, int]) -> None:
        if self.pipes.output in ready:
            self.buffer = os.read(self.pipes.output, _PIPE_BUF)
            if not self.buffer:
                os.close(self.pipes.output)
                self.output_open = False
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
        """Print a line of our own if there is still a reader."""
        if not self.reader_gone:
            self.buffer += f"{line}\n".encode()

    def _last_lines(self) -> None:
        """Forward what spark-submit wrote before it ended, not up to end of file, which daemons delay."""
        deadline = time.monotonic() + _FAREWELL
        while not self.reader_gone and time.monotonic() < deadline:
            if not self.buffer and not self.output_open:
                return
            ready = self._poll(0.1)
            if not self.buffer and self.pipes.output not in ready:
                return
            self._relay(ready)


def _wait_for_the_rest() -> None:
    """Give workers a moment before they are killed: they end when they see that the JVM is gone."""
    deadline = time.monotonic() + _FAREWELL
    while descendants() and time.monotonic() < deadline:
        time.sleep(0.05)
        reap()


def _spark_home() -> Path:
    """Return the folder of the pyspark package beside this interpreter, without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SystemExit("machine.no-pyspark: this Python has no pyspark; do: make setup")
    return Path(spec.origin).parent
