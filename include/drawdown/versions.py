"""The versions of Python, Airflow and Spark that this version supports; others are refused.

The check runs before anything else, and at each parse of a DAG file, so it only reads package metadata.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, version

from drawdown.errors import MachineError

SUPPORTED = {
    "apache-airflow-core": ("Airflow", (3, 3, 0), (4,), "airflow"),
    "pyspark": ("Spark", (4, 2, 0), (4, 3), "spark"),
}
"""By package: its usual name, the first supported version, the first too new one, the extra to install."""
OLDEST_PYTHON = (3, 11)


def check_versions() -> None:
    """Raise MachineError ``versions.unsupported`` for an unsupported version; packages may be absent."""
    if sys.version_info < OLDEST_PYTHON:
        raise _unsupported(
            "Python", sys.version.split()[0], "Python 3.11 or later", "install Python 3.11 or later"
        )
    for package, (name, first, too_new, extra) in SUPPORTED.items():
        try:
            found = version(package)
        except PackageNotFoundError:
            continue
        if not first <= _numbers(found) < too_new:
            wanted = f"{name} from {_text(first)}, below {_text(too_new)}"
            raise _unsupported(name, found, wanted, f"pip install 'drawdown[{extra}]'")


def _unsupported(name: str, found: str, wanted: str, do: str) -> MachineError:
    return MachineError(
        "versions.unsupported",
        f"{name} {found} is installed; this version of Drawdown supports {wanted}",
        where=sys.prefix,
        do=f"{do}   # docs/versions.md",
    )


def _numbers(version: str) -> tuple[int, ...]:
    """Return 4, 2, 0 for ``4.2.0.dev1``."""
    leading = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, leading[0].split("."))) if leading else ()


def _text(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
