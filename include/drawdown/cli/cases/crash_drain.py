"""The process that dies: drains one pipeline of the project that it is given on standard input."""

from __future__ import annotations

import pickle
import sys

from drawdown.application import Application, exit_code
from drawdown.clusters.local import local_profile, submit_conf
from drawdown.metastore import Metastore
from drawdown.spec import load_pipeline


def main() -> int:
    """Returns an exit code of `drawdown run`; the drain that follows says what was wrong."""
    project, name = pickle.load(sys.stdin.buffer)  # noqa: S301  written by crash.py, our parent
    pipeline = load_pipeline(project, name)
    with Metastore.open(project.metastore_url) as metastore:
        application = Application(project, metastore, submit_conf(project, local_profile(project)))
        return exit_code(application.drain_all([pipeline]))


if __name__ == "__main__":
    sys.exit(main())
