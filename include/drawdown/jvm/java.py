"""The Java that Spark and the broker use: found as Spark finds it, checked, installed if allowed.

Standard library only, because it is used before the virtual environment exists.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from drawdown.errors import MachineError

OLDEST = 17
VECTOR_MODULE = "jdk.incubator.vector"
"""Spark 4 adds this module on its command line; a runtime without it does not start."""

_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Environment variables that every Java reads options from."""

_INSTALL = (
    "install Java 17 or later, on Debian and Ubuntu: apt-get install openjdk-17-jre-headless "
    "(or default-jre-headless); or set JAVA_HOME to one"
)


@dataclass(frozen=True)
class Java:
    """A Java that Spark can run on: its executable and its version as it prints it (``17.0.15``)."""

    executable: Path
    version: str


def require_java() -> Java:
    """Return the Java of JAVA_HOME, else of PATH, the order of Spark's launcher.

    Raises MachineError ``java.missing``, ``java.home-wrong``, ``java.options-wrong``, ``java.too-old``,
    ``java.no-vector-module`` or ``java.broken``.
    """
    executable = _executable()
    command = [str(executable), "--add-modules", VECTOR_MODULE, "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0 and (version := _version(done.stderr)):
        if _major(version) < OLDEST:
            raise _too_old(executable, version)
        return Java(executable, version)
    # Java 8 does not have --add-modules: run it again without, to find out what is wrong.
    plain = subprocess.run([str(executable), "-version"], capture_output=True, text=True, check=False)
    version = _version(plain.stderr)
    if version is not None and _major(version) < OLDEST:
        raise _too_old(executable, version)
    if version is not None:
        raise MachineError(
            "java.no-vector-module",
            f"this Java {version} was built without the module {VECTOR_MODULE}, which Spark needs",
            where=str(executable),
            do=_INSTALL,
        )
    if (options := _broken_options(executable)) is not None:
        raise options
    raise MachineError(
        "java.broken",
        f"it does not say its version: {(plain.stderr or plain.stdout).strip()[:200] or 'no output'}",
        where=str(executable),
        do=_INSTALL,
    )


def _broken_options(executable: Path) -> MachineError | None:
    """Return the error of a Java that only starts without the options of the environment."""
    given = {name: value for name in _OPTIONS if (value := os.environ.get(name))}
    without = {name: value for name, value in os.environ.items() if name not in _OPTIONS}
    command = [str(executable), "-version"]
    if not given or subprocess.run(command, capture_output=True, env=without, check=False).returncode:
        return None
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in (said.stderr or said.stdout).splitlines() if not line.startswith("Picked up ")]
    return MachineError(
        "java.options-wrong",
        f"Java does not start with {' and '.join(f'{n}={v}' for n, v in given.items())}:"
        f" {' '.join(lines)[:200] or 'it says nothing'}",
        where=f"environment variable {', '.join(given)}",
        do=f"unset {' '.join(given)}   # or correct the options that Java complains about",
    )


def _executable() -> Path:
    if home := os.environ.get("JAVA_HOME"):
        executable = Path(home, "bin", "java")
        if not os.access(executable, os.X_OK):
            raise MachineError(
                "java.home-wrong",
                f"JAVA_HOME is {home}, and there is no bin/java in it",
                where="environment variable JAVA_HOME",
                do="unset JAVA_HOME   # uses the java of PATH; or point it at a Java 17 or later",
            )
        return executable
    if found := shutil.which("java"):
        return Path(found)
    raise MachineError(
        "java.missing", "there is no Java on this machine", where="JAVA_HOME and PATH", do=_INSTALL
    )


def _version(text: str) -> str | None:
    found = re.search(r'version "([^"]+)"', text)
    return found[1] if found else None


def _major(version: str) -> int:
    """Return 17 for ``17.0.15``, and 8 for ``1.8.0_402``: before Java 9 the first number was 1."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def _too_old(executable: Path, version: str) -> MachineError:
    return MachineError(
        "java.too-old",
        f"Java {version} was found; Spark needs {OLDEST} or later",
        where=str(executable),
        do=_INSTALL,
    )
