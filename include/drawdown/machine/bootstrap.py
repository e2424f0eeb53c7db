"""`make setup`: from a bare Python 3.11 and nothing else to everything Drawdown runs on.

Run by the system's python3 as a plain script, before any environment exists: standard library only,
and nothing newer than Python 3.8 in this file, so that an old Python gets a sentence and no syntax
error. It makes the virtual environment; setup.py, run inside it, does the rest. Every step is skipped
when its outcome is there already: a second call takes well under 2 s.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "drawdown-setup.json"
LOG = ROOT / ".drawdown" / "logs" / "setup.log"
OLDEST = (3, 11)


def main() -> int:
    """All of set-up; returns the exit code. Errors are printed with id, what, where and do."""
    if sys.version_info < OLDEST:
        print(f"python.too-old: this is Python {platform.python_version()}", file=sys.stderr)
        print(f"  where: {sys.executable}", file=sys.stderr)
        print("  do:    install Python 3.11 or later and put it first on PATH", file=sys.stderr)
        return 8
    # This script's own folder, which Python puts first, holds modules named like anybody's.
    sys.path[0] = str(ROOT / "include")
    from drawdown.errors import DrawdownError

    try:
        _ensure_java()
        _ensure_environment()
    except DrawdownError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return subprocess.call([str(PYTHON), "-m", "drawdown.machine.setup"])


def _ensure_java() -> None:
    from drawdown.errors import MachineError
    from drawdown.machine import debian
    from drawdown.machine.java import require_java
    from drawdown.machine.progress import step

    try:
        require_java()
    except MachineError as error:
        if error.id == "java.home-wrong" or not debian.can_install():
            raise
        with step("Installing Java (" + error.what + ")", LOG):
            debian.install("openjdk-17-jre-headless", "default-jre-headless")
        require_java()


def _ensure_environment() -> None:
    from drawdown.machine.progress import run, step

    wanted = _environment_key()
    if PYTHON.exists() and STAMP.exists() and json.loads(STAMP.read_text()) == wanted:
        return
    do = "read the log named above; most often the package index cannot be reached"
    if not PYTHON.exists():
        _require_venv()
        with step("Making the virtual environment", LOG):
            run([sys.executable, "-m", "venv", str(VENV)], id="setup.venv", do=do, log=LOG)
    uv = "uv==" + _pinned("uv")
    install = [str(PYTHON), "-m", "uv", "pip", "install", "--python", str(PYTHON)]
    with step("Installing the packages of requirements.txt", LOG):
        pip = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", uv]
        if not _installed("uv", _pinned("uv")):
            run(pip, id="setup.packages", do=do, log=LOG)
        run([*install, "-r", str(ROOT / "requirements.txt")], id="setup.packages", do=do, log=LOG)
        run([*install, "--no-deps", "--editable", str(ROOT)], id="setup.packages", do=do, log=LOG)
    with step("Compiling them, so that every later start is twice as fast", LOG):
        # Some packages carry files that are no Python 3 on purpose: the exit code says nothing.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        compiled = [str(PYTHON), "-m", "compileall", "-q", "-j", "0", str(VENV / "lib")]
        subprocess.run(compiled, env=environment, check=False)
    STAMP.write_text(json.dumps(wanted))


def _environment_key() -> dict[str, str]:
    """What the environment is made of: it is made again when any of these changes."""
    files = [ROOT / name for name in ("requirements.txt", "pyproject.toml")]
    hashes = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    return {"python": platform.python_version(), "folder": str(ROOT), **hashes}


def _pinned(package: str) -> str:
    from drawdown.errors import MachineError

    requirements = ROOT / "requirements.txt"
    found = re.search("^" + package + r"==(\S+)", requirements.read_text(), re.MULTILINE)
    if found is None:
        raise MachineError(
            "setup.requirements",
            "no version of " + package + " is pinned",
            where=str(requirements),
            do="make lock",
        )
    return found[1]


def _installed(package: str, version: str) -> bool:
    return any(VENV.glob("lib/python*/site-packages/" + package + "-" + version + ".dist-info"))


def _require_venv() -> None:
    """Debian packs venv's pip apart (python3-venv): install it, or say so."""
    from drawdown.errors import MachineError
    from drawdown.machine import debian
    from drawdown.machine.progress import step

    if importlib.util.find_spec("ensurepip") is not None:
        return
    package = "python{}.{}-venv".format(*sys.version_info[:2])
    if debian.can_install():
        with step("Installing " + package, LOG):
            debian.install(package, "python3-venv")
        importlib.invalidate_caches()
        if importlib.util.find_spec("ensurepip") is not None:
            return
    raise MachineError(
        "setup.no-venv",
        "this Python cannot make virtual environments: its module ensurepip is missing",
        where=sys.executable,
        do="apt-get install " + package + " (or python3-venv), then run this again",
    )


if __name__ == "__main__":
    sys.exit(main())
