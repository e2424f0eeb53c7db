"""The folder of one standalone cluster: who keeps it, what was ordered, and where its master listens.

.drawdown/clusters/<key>/       mode 0700; gone when the cluster is
    lock                        held (flock) by the supervisor for as long as it lives, so by nobody else
    cluster.json                what was ordered; with the master's address once the workers are registered
    spark.properties            mode 0600: the cluster's secret
    work, scratch               of workers and executors
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
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from drawdown.processes.descendants import kill_marked
from drawdown.processes.private_folder import private_folder

MARK = "DRAWDOWN_CLUSTER"
"""Environment variable of the supervisor and everything below it: the folder."""

_ENDS_WITHIN = 10.0
"""Seconds that a supervisor may take to end."""


@dataclass(frozen=True)
class ClusterRecord:
    """What is known about a cluster.

    Attributes:
        workers, cores, memory: how many, and of each; memory in Spark's words.
        until: when it ends at the latest, seconds since 1970 UTC.
        asked_by: of the run it is for.
        keeper: process id of the supervisor; None until it was started.
        master: ``spark://host:port``; empty until all workers are registered.
        machine: name of the machine it runs on.
    """

    workers: int
    cores: int
    memory: str
    until: float
    asked_by: Mapping[str, Any]
    keeper: int | None = None
    master: str = ""
    machine: str = field(default_factory=platform.node)


@dataclass(frozen=True)
class ClusterFolder:
    """The folder at ``path``, whether it is there or not."""

    path: Path

    @classmethod
    def of(cls, state_dir: Path, key: str) -> ClusterFolder:
        """The folder for a key, which may be any text."""
        readable = re.sub(r"[^A-Za-z0-9_.\-]", "_", key)[:60].lstrip(".")
        return cls(clusters_dir(state_dir) / f"{readable}-{sha256(key.encode()).hexdigest()[:12]}")

    @property
    def properties(self) -> Path:
        return self.path / "spark.properties"

    @property
    def scratch(self) -> Path:
        return self.path / "scratch"

    @property
    def log(self) -> Path:
        """What daemons and supervisor print; beside the other logs: it outlives a cluster that died."""
        return self.path.parents[1] / "logs" / "clusters" / f"{self.path.name}.log"

    def make(self) -> int:
        """The folder, new, and a descriptor that holds its lock."""
        private_folder(self.log.parent.parent)
        private_folder(self.log.parent)
        private_folder(self.path.parent)
        self.path.mkdir(mode=0o700)
        self.scratch.mkdir()
        while (lock := self.lock()) is None:
            # A reaper that looks whether anybody keeps it.
            time.sleep(0.01)
        return lock

    def record(self) -> ClusterRecord | None:
        """None when there is none, or none that can be read."""
        try:
            return ClusterRecord(**json.loads((self.path / "cluster.json").read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, record: ClusterRecord) -> None:
        aside = self.path / "cluster.json.new"
        aside.write_text(json.dumps(asdict(record)))
        aside.replace(self.path / "cluster.json")

    def note(self, **values: Any) -> None:
        """Change these values of the record, which is there."""
        record = self.record()
        assert record is not None
        self.write(replace(record, **values))

    def lock(self) -> int | None:
        """A descriptor that holds the lock until it is closed; None when a supervisor holds it.

        Raises:
            FileNotFoundError: there is no such folder.
        """
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def is_kept(self) -> bool:
        """Whether a supervisor lives."""
        try:
            descriptor = self.lock()
        except FileNotFoundError:
            return False
        if descriptor is not None:
            os.close(descriptor)
        return descriptor is None

    def end(self) -> bool:
        """End the cluster and wait until nothing is left of it; whether there was one."""
        if not self.path.exists():
            return False
        self._tell(signal.SIGTERM)
        deadline = time.monotonic() + _ENDS_WITHIN
        while self.is_kept() and time.monotonic() < deadline:
            time.sleep(0.05)
        kill_marked(MARK, str(self.path))
        self.remove()
        return True

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _tell(self, number: signal.Signals) -> None:
        """Signal the supervisor, and nobody who has its process id after it."""
        record = self.record()
        if record is None or record.keeper is None:
            return
        try:
            process = os.pidfd_open(record.keeper)
        except ProcessLookupError:
            return
        try:
            if self.is_kept():
                signal.pidfd_send_signal(process, number)
        except ProcessLookupError:
            return
        finally:
            os.close(process)


def clusters_dir(state_dir: Path) -> Path:
    """Where the folders of all clusters of a project are."""
    return state_dir.resolve() / "clusters"
