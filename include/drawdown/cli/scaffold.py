"""From the templates beside this file to the files of a new project and a new pipeline.

In a template ``{{name}}`` stands for the pipeline's name, ``{{version}}`` for Drawdown's version.
"""

from __future__ import annotations

import os
import shutil
from importlib.metadata import version
from pathlib import Path

from drawdown.errors import RefusedError

_TEMPLATES = Path(__file__).with_name("templates")
KEPT = (".gitignore", "requirements.txt")


def requirement() -> str:
    """The line of requirements.txt that brings Drawdown."""
    return _rendered("project", "")["requirements.txt"].splitlines()[-1]


def sample_rows() -> bytes:
    """A landing file for the pipeline of the template."""
    return (_TEMPLATES / "sample" / "sample.csv").read_bytes()


def write_project(root: Path) -> list[Path]:
    """Write a project's files and return those that were written.

    Files that a repository of Airflow's may have already (``KEPT``) stay as they are.

    Raises:
        RefusedError: ``init.exists``: another one is there; then none is written.
    """
    files = _rendered("project", "")
    kept = {path for path in KEPT if os.path.lexists(root / path)}
    wanted = {path: text for path, text in files.items() if path not in kept}
    refuse_existing([root / path for path in wanted])
    for path, text in wanted.items():
        _write(root / path, text)
    return [root / path for path in wanted]


def write_pipeline(folder: Path) -> None:
    """A pipeline's folder, whole at once: it is made aside and renamed.

    Raises:
        RefusedError: ``init.exists``.
    """
    refuse_existing([folder])
    # The loader looks at no folder whose name starts with a dot.
    aside = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        for path, text in _rendered("pipeline", folder.name).items():
            _write(aside / path, text)
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def refuse_existing(paths: list[Path]) -> None:
    """Raise RefusedError ``init.exists`` for the first path that is there."""
    for path in paths:
        if os.path.lexists(path):
            raise RefusedError(
                "init.exists",
                f"{path.name} is there already; nothing was changed",
                where=str(path),
                do="choose another name, or another folder",
            )


def _rendered(kind: str, name: str) -> dict[str, str]:
    """Relative path to text of every file of a template."""
    top = _TEMPLATES / kind
    files = sorted(path for path in top.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(top)): _filled(path.read_text(), name) for path in files}


def _filled(text: str, name: str) -> str:
    return text.replace("{{name}}", name).replace("{{version}}", version("drawdown"))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
