"""Archives of Python code that Spark brings to executors: this library, and the modules of a project.

Both are in ``.drawdown/library`` under a name that follows from their content, so that an application keeps
the one that it has begun with. Upkeep removes those that no application has taken for a while.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from drawdown.spec import Project

_PACKAGE = Path(__file__).parents[1]
_NOT_OF_THE_PROJECT = {"pipelines", "drawdown"} | sys.stdlib_module_names
"""Names in `include/`. A module of Python's own library wins in the driver, so it has to win everywhere."""

_EPOCH = (1980, 1, 1, 0, 0, 0)


def library(project: Project) -> Path:
    """Return this library, for executors that lack it."""
    sources = sorted(_PACKAGE.rglob("*.py"))
    # Its files are many, and do not change under an application.
    stamp = sha256("".join(f"{each} {each.stat().st_mtime_ns}" for each in sources).encode())
    return _archive(project, f"drawdown-{stamp.hexdigest()[:12]}.zip", sources, _PACKAGE.parent)


def modules(project: Project) -> Path | None:
    """Return the modules and packages in a project's `include/` for its pipelines; None without any."""
    include = project.root / "include"
    files = sorted(_files(include))
    if not files:
        return None
    stamp = sha256()
    for file in files:
        stamp.update(f"{file.relative_to(include)}\0{file.stat().st_size}\0".encode())
        stamp.update(file.read_bytes())
    return _archive(project, f"modules-{stamp.hexdigest()[:12]}.zip", files, include)


def _files(include: Path) -> Iterator[Path]:
    for each in include.glob("*"):
        name = each.name.removesuffix(".py")
        if name in _NOT_OF_THE_PROJECT or not name.isidentifier():
            continue
        if each.is_dir():
            below = [file for file in each.rglob("*") if file.is_file() and file.suffix != ".pyc"]
            # A folder of data or keys is not for executors, but what lies beside modules is.
            if any(file.suffix == ".py" for file in below):
                yield from below
        elif each.suffix == ".py":
            yield each


def _archive(project: Project, name: str, files: Iterable[Path], top: Path) -> Path:
    path = project.state_dir / "library" / name
    if path.exists():
        # In use: upkeep goes by the time.
        path.touch()
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}")
    with zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.writestr(zipfile.ZipInfo(str(file.relative_to(top)), _EPOCH), file.read_bytes())
    aside.replace(path)
    return path
