"""The process that dies: drains one pipeline of the project that it gets on standard input."""

from __future__ import annotations

import pickle
import sys

from drawdown.application import SparkApplication, exit_code
from drawdown.launch.local import local_profile, submit_conf
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace


def main() -> int:
    """Return an exit code of `drawdown run`; write a file that says that the drain finished."""
    project, name, drained = pickle.load(sys.stdin.buffer)  # noqa: S301  written by crash.py, our parent
    pipeline = load_pipeline(project, name)
    with Workspace.open(project) as workspace:
        application = SparkApplication(workspace, submit_conf(project, local_profile(project)))
        code = exit_code(application.drain_all([pipeline]))
    drained.touch()
    return code


if __name__ == "__main__":
    sys.exit(main())
