"""`drawdown init`: a pipeline that runs, to be changed; around it a project where there is none."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.screen import out
from drawdown.errors import RefusedError, SpecError

if TYPE_CHECKING:
    from drawdown.spec import Project
    from drawdown.storage import Storage

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


def init(name: Annotated[str, typer.Argument(help="Lower-case letters, digits and _, at most 63.")]) -> None:
    """Make a working pipeline: spec, transform, quality, a test, and a small landing file.

    In a folder that belongs to no project, the project is made too: include/project.yaml, dags/drawdown.py,
    jobs, a CI workflow, and requirements.txt and .gitignore where there are none.
    """
    from drawdown.cli.scaffold import requirement

    _check_name(name)
    root, is_new = _root()
    folder = root / "include" / "pipelines" / name
    written = _make(root, folder, is_new=is_new)
    out().print("\n".join(f"[green]✓[/] {_shown(path)}" for path in written), soft_wrap=True)
    if is_new and str(root / "requirements.txt") not in written:
        out().print(f"requirements.txt was there and is as it was; add: {requirement()}", markup=False)
    out().print(f"\nNext:\n  drawdown test {name}\n  drawdown run {name}")


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise SpecError(
            "spec.pipeline-name",
            f"{name[:80]!r} cannot be the name of a pipeline",
            do="use lower-case letters, digits and _, at most 63, a letter first",
        )


def _root() -> tuple[Path, bool]:
    """The project's root and whether there is a project yet: if not, the current folder becomes one."""
    from drawdown.spec import find_root

    try:
        return find_root(), False
    except SpecError:
        if os.environ.get("DRAWDOWN_PROJECT"):
            raise
        return Path.cwd(), True


def _make(root: Path, folder: Path, *, is_new: bool) -> list[str]:
    from drawdown.cli.scaffold import refuse_existing, sample_rows, write_pipeline, write_project
    from drawdown.spec import load_project
    from drawdown.storage import Storage

    refuse_existing([folder])
    if not is_new:
        _refuse_taken_sink(load_project(), folder.name)
    written = write_project(root) if is_new else []
    project = load_project(root)
    folder.parent.mkdir(parents=True, exist_ok=True)
    write_pipeline(folder)
    storage = Storage(project.storage_root)
    sample = f"landing/{folder.name}/sample.csv"
    if not _holds_files(storage, f"landing/{folder.name}"):
        storage.write_atomic(sample, sample_rows())
    return [*map(str, written), f"{folder}/", storage.path(sample)]


def _refuse_taken_sink(project: Project, name: str) -> None:
    """Another pipeline may write into the path that the new one would."""
    from drawdown.spec import iter_pipelines
    from drawdown.values.paths import overlaps

    for other in iter_pipelines(project):
        path = None if isinstance(other, SpecError) else other.sink.path
        if not isinstance(other, SpecError) and path is not None and overlaps(path, f"tables/{name}"):
            raise RefusedError(
                "init.sink-taken",
                f"{other.name} writes into {path} already; nothing was changed",
                where=str(project.pipelines_dir),
                do="choose another name",
            )


def _holds_files(storage: Storage, folder: str) -> bool:
    try:
        return any(True for _ in storage.list_files(f"{folder}/*"))
    except FileNotFoundError:
        return False


def _shown(path: str) -> str:
    here = f"{Path.cwd()}/"
    return path.removeprefix(here)
