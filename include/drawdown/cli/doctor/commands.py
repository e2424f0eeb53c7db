"""Commands that fix, as this user has to type them here."""

from __future__ import annotations

import os
from pathlib import Path

from drawdown.jvm.home import HOME, machine_root
from drawdown.jvm.installation import how_to_set_up
from drawdown.spec import Project


def as_root(command: str) -> str:
    """A command that only root may give."""
    return command if os.geteuid() == 0 else f"sudo {command}"


def setup(project: Project) -> str:
    """Fetches what the machine lacks, wherever it is typed."""
    root = machine_root(project.root)
    if how_to_set_up() != "make setup":
        return how_to_set_up()
    if not (root / "Makefile").is_file():
        return f"unset {HOME}   # there has been no `make setup` in {root}"
    return "make setup" if root == Path.cwd() else f"make -C {root} setup"
