"""The jars of Spark's connectors, of object storage and of the local broker, as ``jars.lock`` has them.

Every artifact is fetched by its exact coordinate, without following dependencies.
"""

from __future__ import annotations

import hashlib
import shutil
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from drawdown.errors import MachineError
from drawdown.jvm.installation import how_to_set_up
from drawdown.jvm.ivy import Ivy
from drawdown.values.text import counted

LOCK_FILE = Path(__file__).with_name("jars.lock")
CONNECTORS = "jars"
OBJECT_STORAGE = "object-storage-jars"
GOOGLE_STORAGE = "google-storage-jars"
BROKER = "broker-jars"


@dataclass(frozen=True, order=True)
class Jar:
    """One line of the lock: where a jar goes, its ``group:artifact:version`` and its SHA-256 (hex)."""

    folder: str
    coordinate: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Return ``group_artifact-version.jar``, Ivy's name for it, by which groups do not collide."""
        group, artifact, version = self.coordinate.split(":")
        return f"{group}_{artifact}-{version}.jar"

    def path(self, state_dir: Path) -> Path:
        """Return the jar's path below the project's ``.drawdown``."""
        return state_dir / self.folder / self.file_name


def read_lock() -> list[Jar]:
    """Return all jars of the lock file, in its order."""
    entries = tomllib.loads(LOCK_FILE.read_text())["jar"]
    return [Jar(**entry) for entry in entries]


def jar_paths(state_dir: Path, folder: str) -> list[Path]:
    """Return the jars of one folder, in the lock's order; MachineError ``jars.missing`` if one is missing."""
    paths = [jar.path(state_dir) for jar in read_lock() if jar.folder == folder]
    if missing := [path for path in paths if not path.exists()]:
        raise MachineError(
            "jars.missing",
            f"missing: {len(missing)} of {counted(len(paths), 'jar')}, {missing[0].name} first",
            where=str(missing[0].parent),
            do=how_to_set_up(),
        )
    return paths


def bucket_jars(state_dir: Path, schemes: Collection[str]) -> list[Path]:
    """Return the jars for buckets of these schemes, ``s3`` and ``gs``; raises as `jar_paths`."""
    folders = {"s3": OBJECT_STORAGE, "gs": GOOGLE_STORAGE}
    return [
        path
        for scheme, folder in folders.items()
        if scheme in schemes
        for path in jar_paths(state_dir, folder)
    ]


def check_jars(state_dir: Path, jars: Sequence[Jar]) -> list[Jar]:
    """Hash every jar and return the missing ones; jars that are not in the lock are removed.

    Hashing all takes 0.1 s, so there is no stamp that could be wrong. Raises MachineError
    ``jars.checksum`` for the first file that differs from the lock, after removing it.
    """
    _remove_strangers(state_dir, jars)
    missing = [jar for jar in jars if not jar.path(state_dir).exists()]
    for jar in jars:
        if jar not in missing:
            _verify(jar, jar.path(state_dir))
    return missing


def fetch_jars(state_dir: Path, jars: Sequence[Jar]) -> None:
    """Fetch these jars and put each into its folder once its SHA-256 is right.

    Raises MachineError ``jars.unreachable`` with Ivy's words, or ``jars.checksum``.
    """
    with Ivy(state_dir / "ivy") as ivy:
        # One resolution per folder: in a common one, Ivy would keep one version of an artifact
        for folder in sorted({jar.folder for jar in jars}):
            wanted = [jar for jar in jars if jar.folder == folder]
            fetched = {path.name: path for path in ivy.resolve([jar.coordinate for jar in wanted])}
            for jar in wanted:
                source, target = fetched[jar.file_name], jar.path(state_dir)
                _verify(jar, source)
                target.parent.mkdir(parents=True, exist_ok=True)
                source.replace(target)


def copy_jars(state_dir: Path, jars: Sequence[Jar], copies: Path) -> None:
    """Copy these jars from a folder and its sub-folders, each once its SHA-256 is right there.

    Raises MachineError ``jars.no-copy`` if one is not in any of them with the content in the lock.
    """
    for jar in jars:
        source = next((path for path in copies.rglob(jar.file_name) if sha256(path) == jar.sha256), None)
        if source is None:
            raise MachineError(
                "jars.no-copy",
                f"{jar.file_name} is not there with the SHA-256 that the lock says: {jar.sha256}",
                where=str(copies),
                do="copy .drawdown of a machine where `drawdown jars fetch` of the same version was run",
            )
        target = jar.path(state_dir)
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_suffix(".making")
        shutil.copyfile(source, aside)
        aside.replace(target)


def sha256(path: Path) -> str:
    """Return the hex SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _verify(jar: Jar, path: Path) -> None:
    found = sha256(path)
    if found == jar.sha256:
        return
    path.unlink()
    raise MachineError(
        "jars.checksum",
        f"{jar.coordinate} has SHA-256 {found}, the lock says {jar.sha256}; the file was removed",
        where=str(path),
        do=f"{how_to_set_up()} fetches it again; if that fails too, the repository or the lock is wrong",
    )


def _remove_strangers(state_dir: Path, jars: Sequence[Jar]) -> None:
    """Remove jars of earlier locks, which would put two versions of their classes on one class path."""
    known = {jar.path(state_dir) for jar in jars}
    for folder in {jar.folder for jar in jars}:
        for path in (state_dir / folder).glob("*.jar"):
            if path not in known:
                path.unlink()
