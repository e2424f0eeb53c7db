"""The Spark settings of an application on this machine: driver and executors in one JVM."""

from __future__ import annotations

from drawdown.launch.settings import ON_THIS_MACHINE, conf_of
from drawdown.spec import Cluster, LocalCluster, Project


def submit_conf(project: Project, cluster: Cluster) -> dict[str, str]:
    """Settings for spark-submit's ``--conf`` or a session builder; ``spark.master`` is among them.

    For a profile of another kind: those of an application that only looks, and needs no cluster for it
    (`drawdown plan`, `state`, `test`).

    Raises:
        MachineError: ``jars.missing``.
    """
    master = cluster.master if isinstance(cluster, LocalCluster) else LocalCluster().master
    return conf_of(project, cluster, {"spark.master": master, **ON_THIS_MACHINE})


def local_profile(project: Project) -> Cluster:
    """The profile `local`, as it is by default where the project has none of that name."""
    return project.clusters.get("local", LocalCluster())
