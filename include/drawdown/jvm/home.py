"""Where set-up has put the jars and the class archive that a project uses.

A separate project, made by `drawdown init` outside the folder where `make setup` was run, has none: it uses
those of the installation, so that one set-up serves every project on the machine. `drawdown jars fetch`
does for a wheel what `make setup` does for a checkout.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from drawdown.jvm.installation import INSTALLATION
from drawdown.jvm.jars import CONNECTORS

HOME = "DRAWDOWN_HOME"
"""Environment variable: a folder whose ``.drawdown`` holds the jars; wins over the other two places."""


def machine_root(project_root: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder whose ``.drawdown`` to use: DRAWDOWN_HOME, the project itself, or the installation.

    The project counts when set-up has been run in it. This does not check that all jars exist.
    """
    if named := environment.get(HOME):
        return Path(named).resolve()
    if (project_root / ".drawdown" / CONNECTORS).is_dir():
        return project_root
    return INSTALLATION
