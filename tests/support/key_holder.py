"""A process with Airflow's keys in its environment that submits a job from a fork of itself, as Airflow does.

    python key_holder.py KIND REPORT FILE...

KIND: ``closed`` loads Drawdown's plugin, as every component of Airflow does; ``bare`` does not, and submits
without a hook of Drawdown, as a stock operator; ``idle`` only says that it runs, and waits.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

JOB = Path(__file__).with_name("prying_job.py")
CONF = {"spark.ui.enabled": "false", "spark.master": "local[1]"}


def main(kind: str, *arguments: str) -> int:
    if kind == "closed":
        import drawdown.airflow.plugin  # noqa: F401
    sys.stdout.write(f"component {os.getpid()}\n")
    sys.stdout.flush()
    if kind == "idle":
        sys.stdin.read()
        return 0
    if task := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(task, 0)[1])
    sys.stdout.write(f"task {os.getpid()}\n")
    sys.stdout.flush()
    kept = os.open(arguments[1], os.O_RDONLY)
    os.set_inheritable(kept, True)
    os._exit(_with_the_hook(arguments) if kind == "closed" else _bare(arguments))


def _with_the_hook(arguments: tuple[str, ...]) -> int:
    from drawdown.airflow.tasks.spark_submit_hook import DrainHook
    from drawdown.launch.environment import PASSED
    from drawdown.launch.settings import Settings

    conf = {key: value for key, value in CONF.items() if key != "spark.master"}
    environment = {PASSED: "NAMED_BY_THE_PROJECT"}
    hook = DrainHook(
        settings=Settings(CONF), conf=conf, application_args=[*arguments], environment=environment
    )
    hook.submit(str(JOB))
    return hook.exit_code or 0


def _bare(arguments: tuple[str, ...]) -> int:
    options = [part for key, value in CONF.items() for part in ("--conf", f"{key}={value}")]
    command = [sys.executable, "-m", "drawdown.launch.submit", *options, str(JOB), *arguments]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
