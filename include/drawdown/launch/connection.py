"""An existing master, whose address comes from an Airflow connection as the Spark provider reads it.

The workers may run on other machines than the driver, so jars, this library and the project's modules are
sent with the application.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from drawdown.errors import SpecError
from drawdown.jvm.home import machine_root
from drawdown.jvm.jars import CONNECTORS, bucket_jars, jar_paths
from drawdown.jvm.own_jar import own_jar
from drawdown.launch.code_archives import library, modules
from drawdown.launch.settings import Settings, conf_of
from drawdown.spec import ConnectionCluster, Project

_UNSUPPORTED = ("principal", "keytab", "spark-home")


@dataclass(frozen=True)
class SparkConnection:
    """An Airflow connection of the type `spark`, or one whose type is the scheme of the master."""

    id: str
    kind: str
    host: str
    port: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def master(self) -> str:
        """Return the master's URL, built as in the Spark provider's SparkSubmitHook._resolve_connection."""
        whole = self.kind == "spark" and self.host and ("://" in self.host or not self.port)
        address = self.host if whole else f"{self.kind}://{self.host}"
        return f"{address}:{self.port}" if self.port else address


def connected(project: Project, profile: ConnectionCluster, connection: SparkConnection) -> Settings:
    """Return the settings of an application on that master; the driver runs on this machine.

    Raises:
        SpecError: ``connection.master``, ``connection.deploy-mode``, ``connection.extra``.
        MachineError: ``jars.missing``.
    """
    _check(connection)
    of_its_kind = {"spark.master": connection.master, **sent_along(project)}
    if connection.master == "yarn" and (queue := connection.extra.get("queue")):
        of_its_kind["spark.yarn.queue"] = str(queue)
    return Settings(conf_of(project, profile, of_its_kind))


def sent_along(project: Project) -> dict[str, str]:
    """Return the settings that bring jars and Python code to executors on machines that have neither.

    Raises:
        MachineError: ``jars.missing``.
    """
    root = machine_root(project.root)
    jars = jar_paths(root / ".drawdown", CONNECTORS)
    if project.bucket_schemes:
        # Executors write state and files themselves, with the classes that put each file once.
        jars += [*bucket_jars(root / ".drawdown", project.bucket_schemes), own_jar(root)]
    archives = [each for each in (library(project), modules(project)) if each is not None]
    return {
        "spark.jars": ",".join(map(str, jars)),
        # Not as --py-files: those also come first in the driver, which needs more than the modules. Not from
        # the storage root: executors fetch files before the jars that could read them there.
        "spark.files": ",".join(map(str, archives)),
        "spark.executorEnv.PYTHONPATH": ":".join(each.name for each in archives),
        # PySpark passes timestamps to Python code in the time zone of its process.
        "spark.executorEnv.TZ": "UTC",
    }


def from_environment(connection_id: str, environment: Mapping[str, str] = os.environ) -> SparkConnection:
    """Read a connection from ``AIRFLOW_CONN_<ID>`` as Airflow does: an address or JSON.

    Raises:
        SpecError: ``connection.missing``, ``connection.unreadable``.
    """
    name = f"AIRFLOW_CONN_{connection_id.upper()}"
    text = environment.get(name)
    if not text:
        raise SpecError(
            "connection.missing",
            f"the master is in the Airflow connection {connection_id!r}, which only Airflow's tasks can read",
            where="include/project.yaml",
            do=f"run the DAG, or set {name} in the environment: spark://host:7077",
        )
    try:
        return _from_json(connection_id, text) if text.startswith("{") else _from_address(connection_id, text)
    except (ValueError, AttributeError):
        raise SpecError(
            "connection.unreadable",
            f"{name} is neither an address nor JSON as Airflow writes it",
            where="environment",
            do="write spark://host:7077",
        ) from None


def _from_json(connection_id: str, text: str) -> SparkConnection:
    values = json.loads(text)
    extra = values.get("extra") or {}
    return SparkConnection(
        connection_id,
        str(values.get("conn_type", "")),
        str(values.get("host") or ""),
        int(values["port"]) if values.get("port") else None,
        json.loads(extra) if isinstance(extra, str) else extra,
    )


def _from_address(connection_id: str, text: str) -> SparkConnection:
    """Parse the form ``type://host:port?key=value``, or the form with the whole master as host."""
    kind, _, rest = text.partition("://")
    scheme, whole, behind = rest.partition("://")
    parts = urlsplit(f"//{behind if whole else rest}")
    host = unquote(parts.hostname or "")
    extra = dict(parse_qsl(parts.query, keep_blank_values=True))
    if "__extra__" in extra:
        extra = json.loads(extra["__extra__"])
    return SparkConnection(connection_id, kind, f"{scheme}://{host}" if whole else host, parts.port, extra)


def _check(connection: SparkConnection) -> None:
    where = f"Airflow connection {connection.id}"
    if connection.master.startswith("k8s://"):
        raise SpecError(
            "connection.master",
            f"the connection {connection.id!r} gives the master {connection.master!r}",
            where=where,
            do="say `kind: kubernetes` in a profile; or the host spark://HOST with a port, or the host yarn",
        )
    if not re.fullmatch(r"yarn|spark://[^/@\s]+:[0-9]{1,5}", connection.master):
        raise SpecError(
            "connection.master",
            f"the connection {connection.id!r} gives the master {connection.master!r}",
            where=where,
            do="give it the type spark, and the host spark://HOST with a port, or the host yarn",
        )
    if connection.extra.get("deploy-mode", "client") != "client":
        raise SpecError(
            "connection.deploy-mode",
            f"the connection {connection.id!r} asks for the deploy mode {connection.extra['deploy-mode']!r}",
            where=where,
            do="set it to client: the driver has to run where it can be watched and stopped",
        )
    for key in _UNSUPPORTED:
        if connection.extra.get(key):
            raise SpecError(
                "connection.extra",
                f"the connection {connection.id!r} has the extra {key!r}, which would have no effect",
                where=where,
                do="remove it",
            )
