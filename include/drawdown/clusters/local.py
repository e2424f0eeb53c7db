"""The Spark settings of an application on this machine: driver and executors in one JVM."""

from __future__ import annotations

from pathlib import Path

from drawdown.machine.archive import driver_conf
from drawdown.machine.home import machine_root
from drawdown.spec import Cluster, Project

LOGGING = Path(__file__).parents[1] / "engine" / "log4j2.properties"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def submit_conf(project: Project, cluster: Cluster) -> dict[str, str]:
    """Settings for spark-submit's ``--conf`` or a session builder; ``spark.master`` is among them.

    A setting of the profile's `conf` wins; its Java options come after ours.

    Raises:
        MachineError: ``jars.missing``.
    """
    ours = {
        "spark.master": cluster.master,
        "spark.driver.memory": cluster.driver_memory,
        # Nobody can look at the page of a driver that is gone in a minute; it costs a port and a second.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Else the host name is looked up, and every port is open to the network.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **driver_conf(machine_root(project.root)),
    }
    theirs = {key: _text(value) for key, value in cluster.conf.items()}
    options = [
        f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        ours.get(_JAVA_OPTIONS),
        theirs.get(_JAVA_OPTIONS),
    ]
    return {**ours, **theirs, _JAVA_OPTIONS: " ".join(option for option in options if option)}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
