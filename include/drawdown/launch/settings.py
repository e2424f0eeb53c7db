"""The settings of an application: public ones on its command line, private ones in a file.

They depend on the profile's kind; this is what every kind has in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from drawdown.jvm.class_archive import AVRO_LIMITS, driver_conf
from drawdown.jvm.home import machine_root
from drawdown.jvm.own_jar import LOCAL_FILES
from drawdown.launch.code_archives import modules
from drawdown.spec import Cluster, Project

LOGGING = Path(__file__).parents[1] / "spark" / "log4j2.properties"
ON_THIS_MACHINE = {
    # By default, the host name is looked up and every port is open to the network.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    **LOCAL_FILES,
}
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")


@dataclass(frozen=True)
class Settings:
    """The settings of an application.

    Attributes:
        conf: for spark-submit's ``--conf`` or a session builder, including ``spark.master``.
        private: a file of further settings, mode 0600, for spark-submit's ``--properties-file``.
    """

    conf: dict[str, str]
    private: Path | None = None


def conf_of(project: Project, cluster: Cluster, of_its_kind: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of one kind, of every application and of the profile's own `conf`.

    A setting of the profile's `conf` wins; its Java options come after ours.

    Args:
        of_its_kind: settings of the kind, including ``spark.master``.

    Raises:
        MachineError: ``jars.missing``.
    """
    ours = (
        of_every_driver(cluster)
        | driver_conf(machine_root(project.root), project.bucket_schemes)
        | _modules_of(project)
        | dict(of_its_kind)
    )
    ours[_JAVA_OPTIONS[0]] = " ".join(filter(None, (logging(LOGGING), ours.get(_JAVA_OPTIONS[0]))))
    return with_profile(ours, cluster)


def _modules_of(project: Project) -> dict[str, str]:
    """Return what lets Python's workers on this machine import the project's modules."""
    archive = modules(project)
    return {} if archive is None else {"spark.executorEnv.PYTHONPATH": str(archive)}


def of_every_driver(cluster: Cluster) -> dict[str, str]:
    """Return the settings that are the same for every kind of profile and every machine."""
    return {
        "spark.driver.memory": cluster.driver_memory,
        # Most drivers end too soon for anyone to open the page; it costs a port and a second.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def logging(file: PurePath) -> str:
    """Return the Java option that names the logging configuration."""
    return f"-Dlog4j2.configurationFile={file.as_uri()}"


def with_profile(ours: Mapping[str, str], cluster: Cluster) -> dict[str, str]:
    """Add the settings of the profile's `conf`, which win; its Java options come after ours."""
    theirs = {key: _text(value) for key, value in cluster.conf.items()}
    ours = {**ours} | {key: " ".join(filter(None, (AVRO_LIMITS, ours.get(key)))) for key in _JAVA_OPTIONS}
    options = {key: " ".join(each[key] for each in (ours, theirs) if key in each) for key in _JAVA_OPTIONS}
    return {**ours, **theirs, **options}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
