"""A run's request for a cluster of a `commands` profile, and the calls of its three programs."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from drawdown.errors import MachineError
from drawdown.launch.commands.answer import UpAnswer
from drawdown.launch.commands.life import to_end
from drawdown.launch.commands.program import Program, executable, program
from drawdown.launch.later_try import is_of_a_later_try
from drawdown.metastore.records import StartedCluster
from drawdown.processes.ports import answers
from drawdown.spec import CommandsCluster, Project

ALIVE_WITHIN = 30.0
"""Seconds that `alive` may take."""

MASTER_WITHIN = 30.0
"""Seconds within which the master has to accept a connection once `up` has ended."""

_DOWN_WITHIN = timedelta(minutes=5)
"""Time that `down` may take if its profile is no longer in project.yaml."""


def require_programs(project: Project, profile: CommandsCluster) -> None:
    """Check that the three programs of a profile can be called. Raises SpecError ``cluster.command``."""
    for name in ("up", "alive", "down"):
        executable(project, name, getattr(profile, name))


@dataclass(frozen=True)
class CommandsRequest:
    """A cluster that a run wants.

    Attributes:
        name: of the profile.
        key: the run's key; each try has an instance of its own.
        by: who requested the run, for the record.
    """

    project: Project
    name: str
    profile: CommandsCluster
    key: str
    workers: int
    by: Mapping[str, Any]

    def record(self, now: datetime) -> StartedCluster:
        """Return the record of a new cluster, before it is started: no other one is ever taken for it."""
        profile, instance = self.profile, secrets.token_hex(6)
        return StartedCluster(
            instance=instance,
            cluster_key=self.key,
            name=_name(self.key, self.project.storage_root, instance),
            profile=self.name,
            down=profile.down,
            workers=self.workers,
            cores=profile.worker_cores,
            memory=profile.worker_memory,
            asked_by=dict(self.by),
            begun_at=now,
            up_by=now + profile.up_within.delta + timedelta(seconds=ALIVE_WITHIN + MASTER_WITHIN),
            deadline=now + profile.ttl.delta,
        )

    def replaces(self, other: StartedCluster, now: datetime) -> StartedCluster:
        """Return what becomes of another cluster of this run: it is to end.

        Raises:
            MachineError: ``cluster.up-failed``; it is that of a later try, and this one has come back too
            late.
        """
        if other.state in ("starting", "up") and is_of_a_later_try(other.asked_by, self.by):
            raise MachineError(
                "cluster.up-failed",
                f"a later try of this task has started {other.name}, so this one starts no cluster",
                where=f"cluster {self.name} of {self.key}",
                do="nothing: look at the later try",
            )
        return to_end(other, now)


def _name(key: str, storage_root: str, instance: str) -> str:
    """Return a name for machines and tags: a part of the run, of the deployment, and the whole instance."""
    readable = re.sub(r"[^a-z0-9]+", "-", key.lower())[:16].strip("-")
    return f"drawdown-{readable}-{sha256(storage_root.encode()).hexdigest()[:5]}-{instance}"


@dataclass(frozen=True)
class Programs:
    """The programs for one recorded cluster. Its profile may have changed since, or be gone: `down` stays."""

    project: Project
    cluster: StartedCluster

    def up(self, give_up: Callable[[], bool]) -> UpAnswer:
        """Start the cluster, or find it if it runs already, and return its answer once the master answers.

        Raises:
            MachineError: ``cluster.up-failed``, ``cluster.bad-answer``, ``cluster.no-master``.
            SpecError: ``cluster.command``.
        """
        profile = self._profile
        assert profile is not None
        said = self._program("up", profile.up).call(profile.up_within.delta.total_seconds(), give_up)
        if said.why:
            raise MachineError(
                "cluster.up-failed",
                f"`up` {said.why}",
                where=f"{profile.up} of cluster {self.cluster.profile}",
                do="run it by hand with the variables of docs/clusters.md; `down` has been called after it",
            )
        answer = UpAnswer.parse(said.output)
        deadline = time.monotonic() + MASTER_WITHIN
        while not answers(*answer.address, within=5):
            if time.monotonic() > deadline or give_up():
                raise MachineError(
                    "cluster.no-master",
                    f"`up` says that the master is {answer.master}, but nothing accepts a connection there"
                    f" within {MASTER_WITHIN:.0f} s",
                    where=f"{profile.up} of cluster {self.cluster.profile}",
                    do="let `up` end only when the master answers; check routes and firewalls",
                )
            time.sleep(0.2)
        return answer

    def why_not_alive(self, seconds: float = ALIVE_WITHIN) -> str:
        """Ask `alive`; return what it says against the cluster, empty when it is well."""
        profile = self._profile
        if profile is None:
            return "its profile is no longer in include/project.yaml"
        return self._program("alive", profile.alive).call(seconds).why

    def down(self) -> None:
        """End the cluster. Raises MachineError ``cluster.down-failed``, SpecError ``cluster.command``."""
        said = self._program("down", self.cluster.down).call(self.down_within.total_seconds())
        if said.why:
            raise MachineError(
                "cluster.down-failed",
                f"`down` {said.why}; the machines of {self.cluster.cluster_key} may still run",
                where=f"{self.cluster.down} of cluster {self.cluster.profile}",
                do="correct it: it is called again after a pause, by `drawdown clusters end` at once;"
                f" if you see that they are gone, `drawdown clusters gone {self.cluster.name}`",
            )

    @property
    def down_within(self) -> timedelta:
        """Return how long `down` may take."""
        return _DOWN_WITHIN if self._profile is None else self._profile.down_within.delta

    @property
    def _profile(self) -> CommandsCluster | None:
        profile = self.project.clusters.get(self.cluster.profile)
        return profile if isinstance(profile, CommandsCluster) else None

    def _program(self, name: str, relative: str) -> Program:
        cluster, profile = self.cluster, self._profile
        about = {
            "DRAWDOWN_CLUSTER_RUN": cluster.cluster_key,
            "DRAWDOWN_CLUSTER_INSTANCE": cluster.instance,
            "DRAWDOWN_CLUSTER_NAME": cluster.name,
            "DRAWDOWN_CLUSTER_PROFILE": cluster.profile,
            "DRAWDOWN_CLUSTER_DEADLINE": cluster.deadline.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "DRAWDOWN_WORKERS": str(cluster.workers),
            "DRAWDOWN_WORKER_CORES": str(cluster.cores),
            "DRAWDOWN_WORKER_MEMORY": cluster.memory,
        }
        if cluster.answer is not None:
            about["DRAWDOWN_CLUSTER_MASTER"] = str(cluster.answer["master"])
        passed = [] if profile is None else [*profile.pass_environment]
        if profile is not None and profile.spark_secret is not None:
            passed.append(profile.spark_secret)
        return program(self.project, name, relative, about, passed)
