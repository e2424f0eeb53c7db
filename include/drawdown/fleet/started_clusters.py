"""Clusters whose machines may be paid for although no run needs them: red until they are known to be gone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from drawdown.metastore import Metastore
from drawdown.metastore.records import StartedCluster

LATE = timedelta(seconds=60)
"""Time past its deadline that a cluster's own guard gets to end it before others do."""


@dataclass(frozen=True)
class RedCluster:
    """A cluster that is not known to be gone, and why that is not known."""

    record: StartedCluster
    why: str

    @property
    def sentence(self) -> str:
        about = f"cluster {self.record.name} of {self.record.cluster_key} ({self.record.profile})"
        return f"{about} {self.why}"

    @property
    def do(self) -> str:
        """Return the command to type next."""
        return f"drawdown clusters end {self.record.name}"


def red_clusters(metastore: Metastore) -> list[RedCluster]:
    """Return the red ones, by the metastore's clock; no program is called."""
    now = metastore.now()
    found = [RedCluster(each, why_red(each, now)) for each in metastore.clusters.standing()]
    return [each for each in found if each.why]


def why_red(cluster: StartedCluster, now: datetime) -> str:
    """Return why machines may be paid for that no run needs; empty while all is as it should be."""
    if cluster.state == "unknown":
        called = "once" if cluster.tries == 1 else f"{cluster.tries} times"
        return f"is not known to be gone: `down` was called {called}; {cluster.last_error}"
    if cluster.state in ("starting", "up"):
        return "is past its deadline" if now >= cluster.deadline + LATE else ""
    late = cluster.next_try_at is not None and now >= cluster.next_try_at + LATE
    return "is not known to be gone: whoever called `down` has not said how it ended" if late else ""
