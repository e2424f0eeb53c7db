"""Install missing system packages if allowed: as root, with apt. Standard library only."""

from __future__ import annotations

import os
import shutil
import subprocess


def can_install() -> bool:
    """Whether this process may install system packages."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(*candidates: str) -> bool:
    """Install the first of these packages that this release has; return whether one was installed.

    Apt prints to standard output: call this within a step of progress.py.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update"], env=environment, check=False)
    return any(
        subprocess.run(
            ["apt-get", "install", "--yes", "--no-install-recommends", package], env=environment, check=False
        ).returncode
        == 0
        for package in candidates
    )
