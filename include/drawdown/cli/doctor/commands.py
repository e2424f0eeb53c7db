"""The commands that fix a finding, as this user has to type them."""

from __future__ import annotations

import os
from pathlib import Path

from drawdown.jvm.home import HOME, machine_root
from drawdown.jvm.installation import how_to_set_up
from drawdown.spec import Project


def as_root(command: str) -> str:
    """Return a command with sudo if this user is not root."""
    return command if os.geteuid() == 0 else f"sudo {command}"


def setup(project: Project) -> str:
    """Return the command that installs what the machine lacks, from any folder."""
    root = machine_root(project.root)
    if how_to_set_up() != "make setup":
        return how_to_set_up()
    if not (root / "Makefile").is_file():
        return f"unset {HOME}   # there has been no `make setup` in {root}"
    return "make setup" if root == Path.cwd() else f"make -C {root} setup"


def make_airflow(project: Project) -> str:
    """Return what gives this machine an Airflow; only a checkout of Drawdown has `make up`."""
    if (project.root / "dev/services.py").is_file():
        return "make up"
    return "airflow db migrate   # with AIRFLOW_HOME set; without Airflow here there is nothing to do"


def start_broker(project: Project) -> str:
    """Brings a broker that does not answer; only a checkout of Drawdown has `make up`."""
    if (project.root / "dev/services.py").is_file():
        return "make up   # starts a local one; or correct `brokers:`"
    return "start it; or correct `brokers:` in include/project.yaml, or the variables that it names"
