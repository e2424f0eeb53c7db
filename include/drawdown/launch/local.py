"""An application on this machine, driver and executors in one JVM: its settings and its session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from drawdown.launch.settings import ON_THIS_MACHINE, conf_of
from drawdown.spec import Cluster, LocalCluster, Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WITH_A_SECRET = {"spark.authenticate": "true"}
"""Other users of the machine reach the driver's ports. For a local master, Spark makes the secret itself, in
the JVM (SecurityManager.initializeAuth of Spark 4.2), so it is in no file, environment or command line."""


def submit_conf(project: Project, cluster: Cluster) -> dict[str, str]:
    """Return settings for spark-submit's ``--conf`` or a session builder, including ``spark.master``.

    For a profile of another kind: settings of an application that needs no cluster, because it only reads
    (`drawdown plan`, `state`, `test`).

    Raises:
        MachineError: ``jars.missing``.
    """
    master = cluster.master if isinstance(cluster, LocalCluster) else LocalCluster().master
    ours = {"spark.master": master, **ON_THIS_MACHINE, **_WITH_A_SECRET}
    return conf_of(project, cluster, ours)


def local_profile(project: Project) -> Cluster:
    """Return the project's profile `local`, or the default one if the project has none of that name."""
    return project.clusters.get("local", LocalCluster())


@contextmanager
def local_session(project: Project, cluster: Cluster, name: str) -> Iterator[SparkSession]:
    """Open a session with the settings of `submit_conf` for the block.

    Args:
        name: the application's name.

    Raises:
        MachineError: ``jars.missing``; Spark does not start.
    """
    from drawdown.spark.session import application_session

    session = application_session(name, submit_conf(project, cluster), project)
    try:
        yield session
    finally:
        session.stop()
