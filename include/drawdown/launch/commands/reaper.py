"""End the clusters of runs that died without taking them down: by the metastore, from any machine.

Never in a preflight: a `down` may take minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from drawdown.errors import DrawdownError
from drawdown.fleet.started_clusters import LATE
from drawdown.launch.commands.life import end, is_due
from drawdown.launch.commands.request import Programs
from drawdown.metastore import Metastore
from drawdown.metastore.records import StartedCluster
from drawdown.spec import Project

AT_ONCE = 8
"""Calls of `down` at the same time: one that hangs does not keep the others waiting."""


@dataclass(frozen=True)
class Ended:
    """What became of an overdue cluster, as a sentence, and whether it is gone."""

    sentence: str
    gone: bool


def overdue(metastore: Metastore) -> list[StartedCluster]:
    """Return the clusters whose `down` is to be called now."""
    metastore.clusters.adopt(LATE)
    now = metastore.now()
    return [each for each in metastore.clusters.standing() if is_due(each, now)]


def end_overdue(project: Project, metastore: Metastore) -> list[Ended]:
    """Call `down` of each cluster that is due, several at once. A failure is a sentence, too."""
    return end_all(project, overdue(metastore), only_if_due=True)


def end_all(project: Project, found: Sequence[StartedCluster], *, only_if_due: bool = False) -> list[Ended]:
    """Call `down` of each of these clusters, several at once."""
    if not found:
        return []
    with ThreadPoolExecutor(min(AT_ONCE, len(found))) as pool:
        return list(pool.map(lambda each: _ended(project, each, only_if_due=only_if_due), found))


def _ended(project: Project, cluster: StartedCluster, *, only_if_due: bool) -> Ended:
    about = f"cluster {cluster.name} of {cluster.cluster_key} ({cluster.profile})"
    try:
        with Metastore.open(project.metastore_url) as metastore:
            end(metastore.clusters, cluster, Programs(project, cluster), only_if_due=only_if_due)
            gone = metastore.clusters.read(cluster.instance) is None
    except DrawdownError as error:
        return Ended(f"{about} is not ended: {error.what}", gone=False)
    return Ended(f"{about}: ended" if gone else f"{about}: `down` is called once more later", gone=gone)
