"""End the clusters of runs that died without taking them down: by the metastore, from any machine."""

from __future__ import annotations

from datetime import timedelta

from drawdown.errors import DrawdownError
from drawdown.launch.commands.request import Programs
from drawdown.metastore import Metastore
from drawdown.metastore.records import StartedCluster
from drawdown.spec import Project

LATE = timedelta(seconds=60)
"""Time past its deadline that a cluster's own guard gets to end it."""


def overdue(metastore: Metastore) -> list[StartedCluster]:
    """Return the clusters past their deadline, or whose `down` has failed."""
    return metastore.clusters.overdue(LATE)


def end_overdue(project: Project, metastore: Metastore) -> list[str]:
    """Call `down` for each overdue cluster; return a sentence for each. A failure is a sentence, too."""
    return [_ended(project, metastore, cluster) for cluster in overdue(metastore)]


def _ended(project: Project, metastore: Metastore, cluster: StartedCluster) -> str:
    about = f"cluster {cluster.cluster_key} ({cluster.profile}) was past its deadline"
    try:
        Programs(project, cluster).down()
    except DrawdownError as error:
        return f"{about}, and is not ended: {error.what}"
    metastore.clusters.forget(cluster.cluster_key)
    return f"{about}: ended"
