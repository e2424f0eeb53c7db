"""Cluster profiles whose driver runs elsewhere, started through a provider of Airflow: one model per service.

Site-specific settings (networks, roles, log folders, disks) are written in the service's own format under one
key of each model; settings that Drawdown makes itself are refused there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from drawdown.spec.clusters.cluster import SizedCluster
from drawdown.spec.reading.secrets import holds_a_secret, names_a_secret
from drawdown.values.duration import Duration, PositiveDuration
from drawdown.values.model import Line, OptionalLine, problem

_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,199}$"
_FOLDER = r"^(/[A-Za-z0-9_.\-]{1,100}){1,20}$"
_LABEL = r"^[a-z0-9]([a-z0-9\-]{0,61}[a-z0-9])?$"

_OF_EXECUTORS = (
    "spark.executor.instances",
    "spark.executor.cores",
    "spark.executor.memory",
    "spark.dynamicAllocation.enabled",
)
_OF_INSTANCES = (
    "KeepJobFlowAliveWhenNoSteps",
    "TerminationProtected",
    "InstanceGroups",
    "InstanceFleets",
    "InstanceCount",
    "MasterInstanceType",
    "SlaveInstanceType",
)

OwnWords = dict[str, Any]
"""Part of a request, in the format of the service."""


class RemoteCluster(SizedCluster):
    """A driver and executors on machines with a copy of this project.

    ``home`` is its folder, in the image or on each machine: with `include`, `jobs`, `.venv` and
    `.drawdown/jars`, as in the image of the Dockerfile.
    """

    home: Annotated[str, StringConstraints(pattern=_FOLDER)] = "/opt/drawdown"

    @model_validator(mode="after")
    def _executors_are_said_once(self) -> RemoteCluster:
        for key in _OF_EXECUTORS:
            if key in self.conf:
                raise problem("no-effect", "workers, worker_cores and worker_memory set this", "conf", key,
                              do="remove the key")  # fmt: skip
        return self


class KubernetesCluster(RemoteCluster):
    """One SparkApplication of the Spark operator for each run.

    ``secret`` is the name of a Secret whose entries are the environment of driver and executors;
    ``application`` are further keys of the SparkApplication's `spec`.
    """

    kind: Literal["kubernetes"]
    connection: Line = "kubernetes_default"
    image: Line
    namespace: Annotated[str, StringConstraints(pattern=_LABEL)] = "default"
    service_account: Annotated[str, StringConstraints(pattern=_LABEL)]
    secret: OptionalLine = None
    application: OwnWords = Field(default_factory=dict)

    @model_validator(mode="after")
    def _says_nothing_twice(self) -> KubernetesCluster:
        whole = ("type", "mode", "image", "mainApplicationFile", "arguments", "restartPolicy", "sparkConf")
        of_driver = ("memory", "serviceAccount", "envFrom")
        of_executor = ("instances", "cores", "memory", "envFrom")
        own: list[tuple[str, ...]] = [(key,) for key in (*whole, "dynamicAllocation")]
        own += [("driver", key) for key in of_driver]
        own += [("executor", key) for key in of_executor]
        _check(self.application, "application", own)
        return self


class EmrServerlessCluster(RemoteCluster):
    """A job run of an existing EMR Serverless application, which starts with a job and stops when idle.

    ``secrets`` maps variables of the driver's environment to values in AWS Secrets Manager;
    ``configuration_overrides`` are those of the job run.
    """

    kind: Literal["emr-serverless"]
    connection: Line = "aws_default"
    region: OptionalLine = None
    application: Annotated[str, StringConstraints(pattern=r"^[0-9a-z]{1,64}$")]
    role: Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z\-]*:iam::[0-9]{12}:role/[!-~]+$")]
    secrets: dict[Annotated[str, StringConstraints(pattern=_VARIABLE)], Line] = Field(default_factory=dict)
    configuration_overrides: OwnWords = Field(default_factory=dict)

    @model_validator(mode="after")
    def _says_nothing_twice(self) -> EmrServerlessCluster:
        _check(self.configuration_overrides, "configuration_overrides", [("applicationConfiguration",)])
        return self


class EmrCluster(RemoteCluster):
    """A cluster of EMR on EC2 for each run.

    ``idle``: it ends by itself after this time without work; ``job_flow`` are further keys of the request
    RunJobFlow.
    """

    kind: Literal["emr"]
    connection: Line = "aws_default"
    region: OptionalLine = None
    instance_type: Line
    idle: PositiveDuration = Duration.parse("15 minutes")
    job_flow: OwnWords

    @model_validator(mode="after")
    def _says_nothing_twice(self) -> EmrCluster:
        own = [("Name",), ("Steps",), ("AutoTerminationPolicy",)]
        _check(self.job_flow, "job_flow", [*own, *(("Instances", key) for key in _OF_INSTANCES)])
        _between(self.idle, timedelta(minutes=1), timedelta(days=7))
        return self


class DataprocCluster(RemoteCluster):
    """A Dataproc cluster for each run.

    ``idle``: it ends by itself after this time without work; ``cluster_config`` are further keys of
    ClusterConfig.
    """

    kind: Literal["dataproc"]
    connection: Line = "google_cloud_default"
    project_id: Line
    region: Line
    machine_type: Line
    idle: PositiveDuration = Duration.parse("15 minutes")
    cluster_config: OwnWords = Field(default_factory=dict)

    @model_validator(mode="after")
    def _says_nothing_twice(self) -> DataprocCluster:
        own: list[tuple[str, ...]] = [("lifecycle_config",)]
        own += [(of, key) for of in ("master_config", "worker_config")
                for key in ("num_instances", "machine_type_uri")]  # fmt: skip
        _check(self.cluster_config, "cluster_config", own)
        _between(self.idle, timedelta(minutes=5), timedelta(days=14))
        return self

    @model_validator(mode="after")
    def _has_two_workers(self) -> DataprocCluster:
        """A Dataproc cluster has only a master, or at least two workers."""
        least, at = (self.workers, ()) if isinstance(self.workers, int) else (self.workers.min, ("min",))
        if least < 2:
            raise problem("wrong-value", "a Dataproc cluster has at least 2 workers", "workers", *at,
                          do="write 2 or more")  # fmt: skip
        return self


def _check(words: OwnWords, key: str, own: Iterable[tuple[str, ...]]) -> None:
    for path in own:
        if _holds(words, path):
            raise problem("no-effect", "Drawdown sets this itself", key, *path, do="remove the key")
    _refuse_secrets(words, (key,))


def _holds(words: Any, path: tuple[str, ...]) -> bool:
    for part in path:
        if not isinstance(words, Mapping) or part not in words:
            return False
        words = words[part]
    return True


def _refuse_secrets(words: Any, at: tuple[str | int, ...]) -> None:
    """Refuse secrets: the service shows a request to everyone who may view it."""
    if isinstance(words, Mapping):
        # {name: X_PASSWORD, value: ...}, as containers name the variables of their environment.
        named = str(words.get("name", "")) if "value" in words else ""
        for key, value in words.items():
            secret = isinstance(value, str) and (
                names_a_secret(str(key))
                or (key == "value" and names_a_secret(named))
                or holds_a_secret(value)
            )
            if secret:
                raise _shown((*at, str(key)))
            _refuse_secrets(value, (*at, str(key)))
    elif isinstance(words, list):
        for number, value in enumerate(words):
            if holds_a_secret(value):
                raise _shown(at)
            _refuse_secrets(value, (*at, number))


def _shown(at: tuple[str | int, ...]) -> PydanticCustomError:
    return problem(
        "secret", "a request is visible to everyone who may view the cluster", *at,
        do="pass credentials in the driver's environment",
    )  # fmt: skip


def _between(idle: Duration, least: timedelta, most: timedelta) -> None:
    if not least <= idle.delta <= most:
        raise problem(
            "wrong-value", f"the service accepts {least} to {most}", "idle", do="choose one of these"
        )
