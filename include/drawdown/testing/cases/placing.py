"""Where a file of a case goes below the storage root, so that its source reads it."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from drawdown.errors import SpecError
from drawdown.spec import Source

_GLOB = re.compile(r"[*?\[\]{}]")


def place(source: Source, file_name: str) -> str:
    """Return a path, relative to the storage root, at which ``source`` finds a file of this name.

    A folder part with ``*`` or ``?`` becomes one that matches; a static source may name one file.

    Raises:
        SpecError: ``test.glob``: no file of that name can be placed.
    """
    path = PurePosixPath(source.path or "")
    *folders, last = path.parts
    if source.static and path.suffix and not _GLOB.search(last):
        return str(PurePosixPath(*map(_concrete, folders), last))
    if not _GLOB.search(last):
        return str(PurePosixPath(*map(_concrete, folders), last, file_name))
    if "{" not in last and not fnmatchcase(file_name, last):
        raise _cannot_place(source, file_name)
    return str(PurePosixPath(*map(_concrete, folders), file_name))


def _concrete(part: str) -> str:
    made = part.replace("*", "test").replace("?", "0")
    if _GLOB.search(made):
        raise SpecError(
            "test.glob",
            f"tests cannot make a folder that matches {part!r}",
            where="the source's path in pipeline.yaml",
            do="use * and ? only",
        )
    return made


def _cannot_place(source: Source, file_name: str) -> SpecError:
    return SpecError(
        "test.glob",
        f"the source reads {source.path}, and a file {file_name} does not match",
        where="the source's path in pipeline.yaml",
        do="give the file of the case a name that matches",
    )
