"""Check that a path or a pattern stays inside the storage root."""

from __future__ import annotations

import re
from pathlib import Path

from drawdown.errors import RefusedError
from drawdown.values.globs import TooManyPatterns, expand

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
# Each pair that holds a slash at least doubles the patterns, which Hadoop would expand, too.
_MAX_BRACES = 8
_WILDCARD = re.compile(r"[*?\[{]")


def check_pattern(relative: str, root: str) -> str:
    """Return a path for Spark without needless slashes; no interpretation of it as a pattern leaves `root`.

    Raises:
        RefusedError: ``storage.outside-root``, see `check_name`, also for braces that stand for too much.
    """
    return _checked(relative, root, _reason(relative) or _reason_of_braces(relative))


def check_name(relative: str, root: str) -> str:
    """Return the path of a file or folder without needless slashes, after checking that it stays in `root`.

    Nothing in it is a wildcard: a supplier may have named the file. Backslashes are refused because Hadoop
    reads ``\\.\\.`` as an escaped ``..``.

    Raises:
        RefusedError: ``storage.outside-root`` for an absolute path, a URL, ``~``, ``..``, a backslash
            or a control character.
    """
    return _checked(relative, root, _reason(relative))


def _checked(relative: str, root: str, found: str) -> str:
    if found:
        raise _refused(relative, root, found)
    return "/".join(name for name in relative.split("/") if name not in ("", "."))


def check_links(root: Path, relative: str) -> None:
    """Refuse a local path whose existing part leads out of `root` through a symbolic link.

    In a pattern, only the part before the first wildcard can be checked; listings check each link
    that they find.

    Raises:
        RefusedError: ``storage.outside-root``.
    """
    fixed = []
    for name in relative.split("/"):
        if _WILDCARD.search(name):
            break
        fixed.append(name)
    check_target(root, root.joinpath(*fixed), relative)


def check_target(root: Path, path: Path, relative: str) -> None:
    """Refuse `path` when it resolves to a place outside `root` (RefusedError ``storage.outside-root``)."""
    target, inside = path.resolve(), root.resolve()
    if not target.is_relative_to(inside):
        raise _refused(relative, str(root), f"is a symbolic link to {target}")


def _reason(relative: str) -> str:
    if any(ord(char) < 32 for char in relative):
        return "holds a control character"
    if "\\" in relative:
        return "holds a backslash"
    if relative.startswith(("/", "~")):
        return "is absolute"
    if _SCHEME.match(relative):
        return "is a URL"
    return "holds '..'" if ".." in relative.split("/") else ""


def _reason_of_braces(relative: str) -> str:
    if relative.count("{") > _MAX_BRACES:
        return f"holds more than {_MAX_BRACES} braces"
    # Checked after the expansion: `.{./x,y}` means `../x`.
    try:
        patterns = expand(relative)
    except TooManyPatterns as error:
        return f"is a pattern that is not followed: {error}"
    return "holds '..'" if any(".." in pattern.split("/") for pattern in patterns) else ""


def _refused(relative: str, root: str, found: str) -> RefusedError:
    return RefusedError(
        "storage.outside-root",
        f"the path {relative!r} {found}, so it can leave the storage root",
        where=root,
        do="give a path relative to the storage root, below it",
    )
