"""The temporary folder of one application: Spark's folders, native libraries, files of Python code.

Spark removes its folders after a regular end, but not when it is killed. So every application gets a folder
in the system's temporary folder that another process removes: the guard of a submitted application
(launch/submit_guard.py), or the command itself when it ends; else the next application, or upkeep.

A folder is in use while its lock is held, or while a process is alive that was started with it in its
environment. At module level standard library only, because the guard uses it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SCRATCH = "DRAWDOWN_SCRATCH"
"""Environment variable of every process of an application: the application's folder."""

_PREFIX = "drawdown-run-"
_LOCK = "lock"
_BEING_MADE = 60.0
"""Seconds during which a folder without a lock may still be in creation."""

_own: list[Scratch] = []
_elsewhere: list[str] = []


@dataclass(frozen=True)
class Scratch:
    """A folder of mode 0700 for one application.

    Attributes:
        lock: descriptor that holds the folder until it is closed, as are its copies in forked processes.
        further: folders that belong to it: one in each folder that SPARK_LOCAL_DIRS names.
    """

    path: Path
    lock: int
    further: tuple[Path, ...] = ()

    @classmethod
    def make(cls) -> Scratch:
        """Make a new folder, in the folder that TMPDIR names."""
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        further = tuple(place / path.name for place in _local_dirs())
        for folder in further:
            folder.mkdir(mode=0o700, parents=True)
        return cls(path, lock, further)

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return an environment in which Python and, through spark-submit, a driver's JVM use the folder."""
        # Not JDK_JAVA_OPTIONS, which every JVM prints. Spark's own folders are in java.io.tmpdir, too.
        options = f"{environment.get('SPARK_SUBMIT_OPTS', '')} -Djava.io.tmpdir={self.path}".strip()
        found = {SCRATCH: str(self.path), "TMPDIR": str(self.path), "SPARK_SUBMIT_OPTS": options}
        if self.further:
            found["SPARK_LOCAL_DIRS"] = ",".join(map(str, self.further))
        return found

    def remove(self) -> None:
        """Remove the folder with its content; a missing folder is no error."""
        for folder in (*self.further, self.path):
            shutil.rmtree(folder, ignore_errors=True)


def own_scratch() -> Scratch:
    """Return this process's folder, made at the first call and removed when the process ends."""
    if not _own:
        remove_left_over()
        scratch, pid = Scratch.make(), os.getpid()
        _own.append(scratch)
        tempfile.tempdir = str(scratch.path)

        def at_exit() -> None:
            if os.getpid() == pid:
                tempfile.tempdir = None
                scratch.remove()

        atexit.register(at_exit)
    return _own[0]


@contextlib.contextmanager
def starting_spark() -> Iterator[None]:
    """Make a JVM that is started in the block use this process's scratch folder."""
    given = own_scratch().environment(os.environ)
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def name_in_use() -> str | None:
    """Return the name of the folder with which this process's Spark was started; None without Spark."""
    if given := os.environ.get(SCRATCH):
        return Path(given).name
    return _own[0].path.name if _own else None


def note_master(master: str) -> None:
    """Remember the master of this process's Spark; with ``local`` all processes are on this machine."""
    if not master.startswith("local"):
        _elsewhere.append(master)


def works_elsewhere() -> bool:
    """Whether processes that were not started with the folder may work for this process."""
    foreign = "PYSPARK_GATEWAY_PORT" in os.environ and SCRATCH not in os.environ
    return foreign or bool(_elsewhere)


def left_over() -> list[Path]:
    """Return folders that this user's ended applications have left behind."""
    found = []
    started_with: set[str] | None = None
    for place in {_temporary(), *_local_dirs()}:
        for path in place.glob(f"{_PREFIX}*"):
            if _is_free(path):
                started_with = _scratches_in_use() if started_with is None else started_with
                found += [path] if path.name not in started_with else []
    return sorted(found)


def remove_left_over() -> list[Path]:
    """Remove the folders of ended applications; return them."""
    found = left_over()
    for path in found:
        shutil.rmtree(path, ignore_errors=True)
    return found


def _is_free(path: Path) -> bool:
    """Whether a folder's lock is free."""
    try:
        stat = path.lstat()
        if stat.st_uid != os.geteuid() or path.is_symlink():
            return False
        first = _temporary() / path.name
        # A folder in SPARK_LOCAL_DIRS belongs to the one of the same name in the temporary folder.
        if first != path and first.exists():
            return _is_free(first)
        descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return path.exists() and time.time() - stat.st_mtime > _BEING_MADE
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _scratches_in_use() -> set[str]:
    """Return the names of the folders with which living processes were started."""
    import psutil

    found = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if folder := process.environ().get(SCRATCH):
                found.add(Path(folder).name)
    return found


def names_in(environment: bytes) -> set[str]:
    """Return the names of the folders in an environment as /proc shows it."""
    mark = f"{SCRATCH}=".encode()
    parts = environment.split(b"\0")
    return {Path(os.fsdecode(part[len(mark) :])).name for part in parts if part.startswith(mark)}


def _temporary() -> Path:
    """Return the parent of the applications' folders, even if this process's temporary folder is one."""
    there = Path(tempfile.gettempdir())
    return there.parent if there.name.startswith(_PREFIX) else there


def _local_dirs() -> list[Path]:
    named = [Path(name) for name in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if name]
    return [each.parent if each.name.startswith(_PREFIX) else each for each in named]
