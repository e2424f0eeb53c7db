"""The folder of one standalone cluster: its supervisor's lock, the request, and the master's address.

.drawdown/clusters/<key>-<instance>/    mode 0700; removed with the cluster
    lock                        held (flock) by the supervisor for as long as it lives, and by nothing else
    cluster.json                the request; and the master's address once the workers are registered
    spark.properties            mode 0600: the cluster's secret
    asked                       another machine wants the cluster to end
    work, scratch               files of workers and executors

The state folder may be one that machines share. Process ids and locks mean something only on the machine of
the cluster, which the record names: from any other one a cluster is neither signalled nor removed, but asked
to end.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from drawdown.errors import MachineError
from drawdown.processes.descendants import kill_marked
from drawdown.processes.identity import started, this_kernel, this_view
from drawdown.processes.ports import LOOPBACK
from drawdown.processes.private_folder import private_folder

MARK = "DRAWDOWN_CLUSTER"
"""Environment variable of the supervisor and all its descendants: the folder."""

ASKED_EVERY = 2.0
"""Seconds between two looks of a supervisor whether another machine has asked for the end."""

_ENDS_WITHIN = 10.0
"""Seconds that a supervisor may take to end."""


@dataclass(frozen=True)
class ClusterRecord:
    """What is known about a cluster.

    Attributes:
        workers, cores, memory: number of workers, and what each has; memory in Spark's notation.
        until: when it ends at the latest, seconds since 1970 UTC.
        asked_by: who requested the run it is for.
        keeper: process id of the supervisor; None until it was started.
        keeper_started: when that process started, in the kernel's ticks.
        master: ``spark://host:port``; empty until all workers are registered.
        host: address of its daemons.
        machine: name of the machine it runs on.
        view: its start and its process ids (`this_view`); empty in records of older versions.
        folder: name of its folder.
    """

    workers: int
    cores: int
    memory: str
    until: float
    asked_by: Mapping[str, Any]
    keeper: int | None = None
    master: str = ""
    host: str = LOOPBACK
    machine: str = field(default_factory=platform.node)
    keeper_started: int | None = None
    view: str = ""
    folder: str = ""

    @property
    def is_here(self) -> bool:
        """Whether process ids of the record are this machine's."""
        return self.view == this_view() if self.view else self.machine == platform.node()

    @property
    def is_of_this_kernel(self) -> bool:
        """Whether locks of the folder can be trusted, as those of another container can."""
        return self.is_here or self.view.split(" ")[0] == this_kernel()


@dataclass(frozen=True)
class ClusterFolder:
    """The folder at ``path``, whether it exists or not."""

    path: Path

    @classmethod
    def of(cls, state_dir: Path, key: str, instance: str) -> ClusterFolder:
        """Return the folder of one cluster of a run, whose key may be any text."""
        return cls(clusters_dir(state_dir) / f"{_stem(key)}-{instance}")

    @classmethod
    def all_of(cls, state_dir: Path, key: str) -> list[ClusterFolder]:
        """Return the folders of all clusters of a run, oldest first."""
        there, stem = clusters_dir(state_dir), _stem(key)
        if not there.is_dir():
            return []
        # Older versions wrote no instance.
        mine = [path for path in there.iterdir() if path.name == stem or path.name.startswith(f"{stem}-")]
        return [cls(path) for path in sorted(mine, key=_changed_at)]

    @classmethod
    def newest_log(cls, state_dir: Path, key: str) -> Path | None:
        """Return the log of the run's last cluster, which may have ended."""
        logs = state_dir.resolve() / "logs" / "clusters"
        found = [*logs.glob(f"{_stem(key)}.log"), *logs.glob(f"{_stem(key)}-*.log")]
        return max(found, key=_changed_at, default=None)

    @property
    def properties(self) -> Path:
        return self.path / "spark.properties"

    @property
    def scratch(self) -> Path:
        return self.path / "scratch"

    @property
    def log(self) -> Path:
        """Return the log of daemons and supervisor, kept beside the other logs after a cluster died."""
        return self.path.parents[1] / "logs" / "clusters" / f"{self.path.name}.log"

    def make(self) -> int:
        """Create the folder and return a descriptor that holds its lock."""
        private_folder(self.log.parent.parent)
        private_folder(self.log.parent)
        private_folder(self.path.parent)
        self.path.mkdir(mode=0o700)
        self.scratch.mkdir()
        while (lock := self.lock()) is None:
            # A reaper is checking whether the folder has a supervisor.
            time.sleep(0.01)
        return lock

    def record(self) -> ClusterRecord | None:
        """Return the record; None when there is none or it cannot be read."""
        try:
            return self._read()
        except (OSError, ValueError, TypeError):
            return None

    def write(self, record: ClusterRecord) -> None:
        aside = self.path / "cluster.json.new"
        aside.write_text(json.dumps(asdict(record)))
        aside.replace(self.path / "cluster.json")

    def note(self, **values: Any) -> ClusterRecord:
        """Change these values of the record; return it as it is now.

        Raises:
            OSError, ValueError, TypeError: there is no record, or none that can be read.
        """
        record = replace(self._read(), **values)
        self.write(record)
        return record

    def _read(self) -> ClusterRecord:
        return ClusterRecord(**json.loads((self.path / "cluster.json").read_text()))

    def lock(self) -> int | None:
        """Return a descriptor that holds the lock until it is closed; None when a supervisor holds it.

        Raises:
            FileNotFoundError: the folder does not exist.
        """
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def is_kept(self) -> bool:
        """Whether the folder's supervisor is alive."""
        try:
            descriptor = self.lock()
        except FileNotFoundError:
            return False
        if descriptor is not None:
            os.close(descriptor)
        return descriptor is None

    @property
    def asked(self) -> Path:
        return self.path / "asked"

    def end(self) -> bool:
        """End the cluster and wait until nothing is left; return whether there was one.

        Raises:
            MachineError: ``cluster.elsewhere``; it is on another machine, and has not ended yet.
        """
        if not self.path.exists():
            return False
        record = self.record()
        if record is not None and not record.is_here:
            self._end_elsewhere(record)
            return True
        self._tell(signal.SIGTERM)
        deadline = time.monotonic() + _ENDS_WITHIN
        while self.is_kept() and time.monotonic() < deadline:
            time.sleep(0.05)
        kill_marked(MARK, str(self.path))
        self.remove()
        return True

    def _end_elsewhere(self, record: ClusterRecord) -> None:
        """Ask its supervisor by a file, and wait until the folder is gone."""
        self.ask()
        deadline = time.monotonic() + ASKED_EVERY + _ENDS_WITHIN
        while self.path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        if self.path.exists():
            raise MachineError(
                "cluster.elsewhere",
                f"the cluster is on the machine {record.machine}, and has not ended since it was asked to",
                where=str(self.path),
                do="look at that machine: if it was started again since, nothing is left; else the cluster"
                " ends at its `ttl` at the latest",
            )

    def ask(self) -> None:
        """Ask the supervisor to end, from whichever machine."""
        with suppress(FileNotFoundError):
            self.asked.touch()

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _tell(self, number: signal.Signals) -> None:
        """Signal the supervisor, but not a later process with the same id."""
        record = self.record()
        if record is None or record.keeper is None or not record.is_here:
            return
        try:
            process = os.pidfd_open(record.keeper)
        except ProcessLookupError:
            return
        try:
            # The lock alone says that somebody keeps the folder, not that it is this process.
            if self.is_kept() and record.keeper_started in (None, started(record.keeper)):
                signal.pidfd_send_signal(process, number)
        except ProcessLookupError:
            return
        finally:
            os.close(process)


def _stem(key: str) -> str:
    readable = re.sub(r"[^A-Za-z0-9_.\-]", "_", key)[:60].lstrip(".")
    return f"{readable}-{sha256(key.encode()).hexdigest()[:12]}"


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def clusters_dir(state_dir: Path) -> Path:
    """Return the folder that holds the folders of all clusters of a project."""
    return state_dir.resolve() / "clusters"
