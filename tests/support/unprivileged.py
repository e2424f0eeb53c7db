"""Start a program without rights, also where the tests run as root, who may read everything."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

_SOMEBODY = "nobody"
_DROPPED = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]


def user() -> int:
    """Return the user that `command` runs programs as."""
    return pwd.getpwnam(_SOMEBODY).pw_uid if os.geteuid() == 0 and _is_open(_interpreter()) else os.geteuid()


def command(*words: str) -> list[str]:
    """Return a command line that runs this one as an ordinary user.

    For root: as somebody else; or, where nobody else can reach the interpreter, as root without capabilities,
    to whom the kernel gives what it gives to any owner of files and processes, and no more.
    """
    if os.geteuid() != 0:
        return [*words]
    ids = [f"--reuid={user()}", f"--regid={user()}", "--clear-groups"] if user() else []
    return ["setpriv", *ids, *_DROPPED, *words]


def as_the_same_user(*words: str) -> list[str]:
    """Return a command line that runs this one as the user of the tests, without capabilities."""
    return ["setpriv", *_DROPPED, *words] if os.geteuid() == 0 else [*words]


def _interpreter() -> Path:
    return Path(sys.executable).resolve()


def _is_open(file: Path) -> bool:
    checkout = Path(__file__).resolve().parents[2]
    places = [file, *file.parents, checkout, *checkout.parents, *Path(sys.prefix).resolve().parents]
    return all(place.stat().st_mode & 0o001 for place in places)
