"""Writes the files of a new project or pipeline from the templates beside this file.

In a template ``{{name}}`` stands for the pipeline's name, ``{{version}}`` for Drawdown's version.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from drawdown.errors import RefusedError
from drawdown.scaffold.bucket import with_bucket

_TEMPLATES = Path(__file__).with_name("templates")
PROJECT = "include/project.yaml"
KEPT = (".gitignore", "requirements.txt")


def requirement() -> str:
    """Return Drawdown's line for requirements.txt."""
    return _rendered("project", "")["requirements.txt"].splitlines()[-1]


def sample_rows() -> bytes:
    """Return an input file for the example pipeline."""
    return (_TEMPLATES / "sample" / "sample.csv").read_bytes()


def write_project(root: Path, bucket: str | None = None) -> list[Path]:
    """Write a project's files and return those that were written.

    Files that an Airflow repository may already have (``KEPT``) are not changed.

    Args:
        bucket: the storage root, when it is not a folder.

    Raises:
        RefusedError: ``init.exists``: another file already exists; then nothing is written.
        SpecError: ``init.no-bucket``.
    """
    files = _rendered("project", "")
    if bucket is not None:
        files[PROJECT] = with_bucket(files[PROJECT], bucket)
    kept = {path for path in KEPT if os.path.lexists(root / path)}
    wanted = {path: text for path, text in files.items() if path not in kept}
    refuse_existing([root / path for path in wanted])
    for path, text in wanted.items():
        _write(root / path, text)
    return [root / path for path in wanted]


def example_files(name: str) -> dict[str, str | bytes]:
    """Return the files of the example pipeline: payments as csv, cleaned into a Delta table."""
    return dict(_rendered("pipeline", name))


def write_folder(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write a pipeline's folder atomically: create it under a temporary name and rename it.

    Raises:
        RefusedError: ``init.exists``.
    """
    refuse_existing([folder])
    # The loader skips folders whose name starts with a dot.
    aside = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        for path, content in files.items():
            _write(aside / path, content)
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def refuse_existing(paths: list[Path]) -> None:
    """Raise RefusedError ``init.exists`` for the first existing path."""
    for path in paths:
        if os.path.lexists(path):
            raise RefusedError(
                "init.exists",
                f"{path.name} already exists; nothing was changed",
                where=str(path),
                do="choose another name, or another folder",
            )


def _rendered(kind: str, name: str) -> dict[str, str]:
    """Map the relative path of every template file to its text."""
    top = _TEMPLATES / kind
    files = sorted(path for path in top.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(top)): _filled(path.read_text(), name) for path in files}


def _filled(text: str, name: str) -> str:
    return text.replace("{{name}}", name).replace("{{version}}", version("drawdown"))


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
