"""``python -m drawdown.launch.submit ARGUMENTS``: spark-submit that can be stopped cleanly.

SparkSubmitOperator calls it instead of ``spark-submit``. Airflow signals a task's process group and
kills it 5 s later, which would end the JVM in the middle of a batch and leave the Python driver alive,
or leave all of Spark alive when only the task is killed. So this process, the *front*, stays in the
process group and only waits, while a *guard* (submit_guard.py) forked from it starts the real
spark-submit in its own session, where those signals do not reach it.

The guard holds the read end of a pipe of which the front has the only write end: closed by the front
when it receives SIGTERM or SIGINT, and by the kernel when the front dies, it means stop. If the guard
itself is killed, the front ends what it left behind.

Standard library only, and no threads, because it forks.

Environment:
    DRAWDOWN_STOP_GRACE: seconds that the driver gets to stop by itself (default 30).
    DRAWDOWN_RUN_FOLDER: a private folder of this run; removed when the run has ended.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from drawdown.launch import submit_guard
from drawdown.processes.closed import close_to_others
from drawdown.processes.descendants import adopt_orphans, descendants, kill_descendants, reap
from drawdown.processes.scratch import Scratch, remove_left_over
from drawdown.stop_pipe import stop_grace

RUN_FOLDER = "DRAWDOWN_RUN_FOLDER"


def main(arguments: list[str]) -> int:
    """Run spark-submit with these arguments; return its exit code (128 + n for signal n)."""
    # A stock SparkSubmitOperator gives its whole environment, Airflow's keys included.
    close_to_others()
    folder = Path(os.environ.get(RUN_FOLDER) or tempfile.mkdtemp(prefix="drawdown-submit-"))
    remove_left_over()
    scratch = Scratch.make()
    grace = stop_grace()
    adopt_orphans()
    watched, held = os.pipe()
    # Fork before any handler is set: the guard sets its own.
    pid = os.fork()
    if pid == 0:
        os.close(held)
        os._exit(submit_guard.run(arguments, folder, scratch, watched, grace))
    os.close(watched)
    _let_go_when_asked_to_stop(held)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        _end_what_the_guard_left(grace)
        submit_guard.remove(folder)
        scratch.remove()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _let_go_when_asked_to_stop(held: int) -> None:
    def let_go(*_: object) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.close(held)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, let_go)


def _end_what_the_guard_left(grace: float) -> None:
    """Wait for the grace time, then kill: the guard has ended, which has closed the stop pipe."""
    deadline = time.monotonic() + grace
    while descendants() and time.monotonic() < deadline:
        reap()
        time.sleep(0.1)
    kill_descendants()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
