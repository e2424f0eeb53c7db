"""Paths in a spec: relative, and always inside the storage root or the pipeline's folder."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from drawdown.layout import OWN, RESERVED
from drawdown.values.globs import Glob, WrongPattern
from drawdown.values.model import problem
from drawdown.values.path_sets import PathSet

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_GLOB = re.compile(r"[*?\[\]{}]")
# Hadoop expands {a,b} before it splits components, so ".." may also stand between braces and commas.
_PARENT = re.compile(r"(?:^|[/{,\[])\s*\.{1,2}\s*(?=$|[/},\]])")

_OWN = PathSet.one(f"/{OWN}")


def _relative(path: str) -> str:
    do = "write a path relative to the storage root or the pipeline's folder, with / between its parts"
    if not path or len(path) > 1000 or path != path.strip():
        raise problem("wrong-path", "the path is empty, too long, or has spaces around it", do=do)
    if path[0] in "/~" or _SCHEME.match(path):
        raise problem("wrong-path", f"{path[:60]!r} is absolute or an address", do=do)
    if _CONTROL.search(path) or "\\" in path or "$" in path or "%" in path:
        raise problem("wrong-path", "the path contains a control character, a backslash, $ or %", do=do)
    if _PARENT.search(path) or "//" in path or path.endswith("/"):
        raise problem("wrong-path", f"{path[:60]!r} has an empty part, '.' or '..' in it", do=do)
    return path


def _without_glob(path: str) -> str:
    if _GLOB.search(path):
        raise problem("wrong-path", f"{path[:60]!r} has a glob character", do="name one folder or file")
    return path


def _glob(path: str) -> str:
    try:
        Glob.parse(path)
    except WrongPattern as error:
        do = "correct the brackets, or name fewer folders in braces"
        raise problem("wrong-path", f"{path[:60]!r}: {error}", do=do) from None
    if PathSet.of("", path).meets(_OWN):
        raise problem(
            "wrong-path",
            f"{path[:60]!r} reaches {OWN}/, which belongs to Drawdown",
            do="read from another folder",
        )
    return path


def _own(path: str) -> str:
    if path.split("/", 1)[0] in RESERVED:
        raise problem(
            "wrong-path", f"{' and '.join(RESERVED)} belong to Drawdown", do="write to another folder"
        )
    return path


def overlaps(one: str, other: str) -> bool:
    """Whether two relative paths are the same folder, or one contains the other."""
    a, b = one + "/", other + "/"
    return a.startswith(b) or b.startswith(a)


def fixed_part(glob: str) -> str:
    """Return the leading folders of a path that contain no glob character."""
    parts = []
    for part in glob.split("/"):
        if _GLOB.search(part):
            break
        parts.append(part)
    return "/".join(parts)


def folder_file(path: str) -> str:
    """Validate the path of a file beside pipeline.yaml; raises a PydanticCustomError (``wrong-path``)."""
    return _without_glob(_relative(path))


_Text = Annotated[str, StringConstraints(max_length=4000)]
RelativePath = Annotated[_Text, AfterValidator(_relative)]
# Where a source reads, below the storage root; globs allowed.
SourcePath = Annotated[RelativePath, AfterValidator(_glob)]
# Where a sink writes, below the storage root.
SinkPath = Annotated[RelativePath, AfterValidator(_without_glob), AfterValidator(_own)]
# A file beside pipeline.yaml.
FolderFile = Annotated[_Text, AfterValidator(folder_file)]
