"""`make setup`: from a bare Python 3.11 and nothing else to everything Drawdown runs on.

Run by the system's python3 as a plain script, before any environment exists: standard library only,
and nothing newer than Python 3.8 in this file, so that an old Python shows a sentence instead of a syntax
error. It makes the virtual environment; setup.py, run inside it, does the rest. A step is skipped when
its result exists: a second call takes well under 2 s.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "drawdown-setup.json"
"""Records what the whole environment was made from; written last."""
MADE = VENV / "drawdown-made.json"
"""Records what the empty environment was made from; written before the first package."""
LOG = ROOT / ".drawdown" / "logs" / "setup.log"
RUNTIME = ROOT / "requirements.txt"
DEV = ROOT / "dev" / "requirements.txt"
"""Packages that tests and checks need; the image does not have this file or these packages."""
OLDEST = (3, 11)


def main() -> int:
    """Run the whole set-up; return the exit code. Errors are printed with id, what, where and do."""
    if sys.version_info < OLDEST:
        print(f"python.too-old: this is Python {platform.python_version()}", file=sys.stderr)
        print(f"  where: {sys.executable}", file=sys.stderr)
        print("  do:    install Python 3.11 or later and put it first on PATH", file=sys.stderr)
        return 8
    # This script's own folder, which Python puts first, holds modules with common names.
    sys.path[:1] = [str(ROOT / "include"), str(ROOT)]
    from drawdown.errors import DrawdownError

    try:
        _ensure_java()
        _ensure_environment()
    except DrawdownError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return subprocess.call([str(PYTHON), "-m", "dev.setup"], cwd=str(ROOT))


def _ensure_java() -> None:
    from dev import debian
    from dev.progress import step
    from drawdown.errors import MachineError
    from drawdown.jvm.java import require_java

    try:
        require_java()
    except MachineError as error:
        if error.id == "java.home-wrong" or not debian.can_install():
            raise
        with step("Installing Java (" + error.what + ")", LOG):
            debian.install("openjdk-17-jre-headless", "default-jre-headless")
        require_java()


def _ensure_environment() -> None:
    from dev.progress import run, step

    wanted = _environment_key()
    made_of = {name: wanted[name] for name in ("python", "folder")}
    stamp = _read(STAMP)
    if PYTHON.exists() and stamp == wanted:
        return
    do = "read the log named above; most often the package index cannot be reached"
    # Earlier versions of set-up wrote a single stamp.
    if not PYTHON.exists() or (_read(MADE) or _part(stamp, made_of)) != made_of:
        _require_venv()
        with step("Making the virtual environment", LOG):
            _remove_environment()
            run([sys.executable, "-m", "venv", str(VENV)], id="setup.venv", do=do, log=LOG)
            _write(MADE, made_of)
    # From here until the end, the environment is neither the old one nor the new one.
    STAMP.unlink(missing_ok=True)
    install = [str(PYTHON), "-m", "uv", "pip", "install", "--python", str(PYTHON)]
    with step("Installing the packages of requirements.txt", LOG):
        _ensure_uv(do)
        locked = [part for file in _locks() for part in ("-r", str(file))]
        run([*install, "--require-hashes", *locked], id="setup.packages", do=do, log=LOG)
        run([*install, "--no-deps", "--editable", str(ROOT)], id="setup.packages", do=do, log=LOG)
    with step("Compiling them, so that every later start is twice as fast", LOG):
        # Some packages contain files that are not Python 3 on purpose, so the exit code is ignored.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        compiled = [str(PYTHON), "-m", "compileall", "-q", "-j", "0", str(VENV / "lib")]
        subprocess.run(compiled, env=environment, check=False)
    _write(STAMP, wanted)


def _read(stamp: Path) -> dict[str, str] | None:
    """Return what a stamp records; None when it is missing or incomplete."""
    try:
        found = json.loads(stamp.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _write(stamp: Path, what: dict[str, str]) -> None:
    """Write a stamp completely or not at all."""
    aside = stamp.with_name(stamp.name + ".new")
    aside.write_text(json.dumps(what))
    aside.replace(stamp)


def _part(stamp: dict[str, str] | None, wanted: dict[str, str]) -> dict[str, str | None]:
    return {name: (stamp or {}).get(name) for name in wanted}


def _remove_environment() -> None:
    """Remove an environment of another Python or folder, whose scripts name the old paths."""
    STAMP.unlink(missing_ok=True)
    MADE.unlink(missing_ok=True)
    if VENV.is_symlink():
        VENV.unlink()
    elif VENV.exists():
        shutil.rmtree(VENV)


def _environment_key() -> dict[str, str]:
    """Return what the environment is made from: it is recreated when any of this changes."""
    files = [*_locks(), ROOT / "pyproject.toml"]
    hashes = {str(file.relative_to(ROOT)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    return {"python": platform.python_version(), "folder": str(ROOT), **hashes}


def _locks() -> list[Path]:
    return [file for file in (RUNTIME, DEV) if file.exists()]


def _ensure_uv(do: str) -> None:
    """Install uv in the locked version, with the locked hashes."""
    from dev.progress import run
    from drawdown.errors import MachineError

    entry = re.search(r"^uv==(\S+)(.*\\\n)*.*$", RUNTIME.read_text(), re.MULTILINE)
    if entry is None:
        raise MachineError(
            "setup.requirements", "no version of uv is pinned", where=str(RUNTIME), do="make lock"
        )
    if any(VENV.glob("lib/python*/site-packages/uv-" + entry[1] + ".dist-info")):
        return
    locked = VENV / "uv.txt"
    locked.write_text(entry[0])
    pip = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--require-hashes"]
    run([*pip, "-r", str(locked)], id="setup.packages", do=do, log=LOG)


def _require_venv() -> None:
    """Install venv's pip, which Debian packages separately (python3-venv), or say that it is needed."""
    from dev import debian
    from dev.progress import step
    from drawdown.errors import MachineError

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
