"""project.yaml: what differs between environments, said once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, model_validator

from drawdown.errors import SpecError
from drawdown.spec.cluster import LocalCluster, StandaloneCluster
from drawdown.spec.cluster_kinds import Profile
from drawdown.spec.database import Database
from drawdown.spec.duration import Duration, PositiveDuration
from drawdown.spec.environment import AIRFLOWS_OWN
from drawdown.spec.model import (
    EmptyIsNone,
    Line,
    Name,
    NumberFromText,
    OptionalLine,
    SpecModel,
    problem,
)
from drawdown.spec.schedule import ClockSchedule
from drawdown.spec.upkeep import Upkeep

_SCHEMES = ("file", "s3", "s3a", "gs", "abfs", "abfss", "hdfs")
# Hadoop expands globs in the paths of readers; delta-rs decodes %20 and the like.
_ODD = re.compile(r"[%*?{}\[\]]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def _storage_root(value: str) -> str:
    scheme, found, rest = value.partition("://")
    if _CONTROL.search(value) or value.startswith("~"):
        raise problem("wrong-value", "is no path or address", do="write a path, or s3://bucket/folder")
    if found and scheme not in _SCHEMES:
        raise problem(
            "wrong-value", f"an address must start with one of {', '.join(_SCHEMES)}", do="use one of them"
        )
    if found and "@" in rest.split("/", 1)[0] and not scheme.startswith("abfs"):
        raise problem(
            "secret", "an address must not hold credentials", do="give them through the environment"
        )
    return value


def _metastore(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not text.startswith(("sqlite:///", "postgresql+psycopg://")) or text in (
        "sqlite:///",
        "sqlite:///:memory:",
    ):
        raise problem(
            "wrong-value",
            "is no metastore address",
            do="write sqlite:///path/file.db or postgresql+psycopg://...",
        )
    return value


class Broker(SpecModel):
    """A Kafka cluster, in neutral terms: rendered for Spark and for librdkafka where it is used.

    ``connection`` is the id of an Airflow connection that holds username and password instead.
    """

    bootstrap_servers: Annotated[
        str,
        StringConstraints(pattern=r"^[A-Za-z0-9_.\-\[\]]+:[0-9]{1,5}(,[A-Za-z0-9_.\-\[\]]+:[0-9]{1,5})*$"),
    ]
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Annotated[Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None, EmptyIsNone] = None
    username: OptionalLine = None
    password: Annotated[SecretStr | None, EmptyIsNone] = None
    ssl_ca_location: OptionalLine = None
    connection: OptionalLine = None

    @model_validator(mode="after")
    def _login_is_whole(self) -> Broker:
        login = {"sasl_mechanism": self.sasl_mechanism, "username": self.username, "password": self.password}
        if self.connection and (self.username or self.password):
            raise problem(
                "contradiction", "the login is in the connection", "connection", do="remove one of them"
            )
        if self.security_protocol.startswith("SASL"):
            for key, value in login.items():
                if value is None and (key == "sasl_mechanism" or not self.connection):
                    raise problem("missing-key", f"{self.security_protocol} needs {key}", do=f"add `{key}:`")
        else:
            for key, value in login.items():
                if value is not None:
                    raise problem(
                        "no-effect", f"{self.security_protocol} has no login", key, do="say SASL_SSL"
                    )
            if self.connection is not None:
                raise problem(
                    "no-effect", f"{self.security_protocol} has no login", "connection", do="say SASL_SSL"
                )
        if self.password is not None and _CONTROL.search(self.password.get_secret_value()):
            raise problem(
                "wrong-value", "holds a control character", "password", do="mind a trailing line break"
            )
        if self.ssl_ca_location and not self.security_protocol.endswith("SSL"):
            raise problem(
                "no-effect", "no TLS without SSL or SASL_SSL", "ssl_ca_location", do="remove the key"
            )
        return self


class Airflow(SpecModel):
    """What the DAGs use: one shared pool, how tasks retry, when `drawdown__freshness` looks."""

    pool: Line = "drawdown"
    retries: Annotated[int, NumberFromText, Field(ge=0, le=100)] = 2
    retry_delay: PositiveDuration = Duration.parse("2 minutes")
    execution_timeout: PositiveDuration = Duration.parse("2 hours")
    freshness_schedule: ClockSchedule = "*/10 * * * *"


def _local_alone() -> dict[str, Profile]:
    return {"local": LocalCluster()}


def _not_of_airflow(name: str) -> str:
    if name.startswith(AIRFLOWS_OWN):
        raise problem(
            "airflow-keys",
            f"{name} is Airflow's own, and reaches no driver",
            do="give the value a variable of another name",
        )
    return name


PassedName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}\*?$"), AfterValidator(_not_of_airflow)
]


class ProjectFile(SpecModel):
    """The keys of project.yaml, references replaced."""

    storage_root: Annotated[str, Field(min_length=1), AfterValidator(_storage_root)] = ".drawdown/storage"
    metastore: Annotated[SecretStr, AfterValidator(_metastore)] = SecretStr(
        "sqlite:///.drawdown/metastore.db"
    )
    brokers: dict[Name, Broker] = Field(default_factory=dict)
    databases: dict[Name, Database] = Field(default_factory=dict)
    clusters: dict[Name, Profile] = Field(default_factory=_local_alone, min_length=1)
    airflow: Airflow = Airflow()
    lease_ttl: PositiveDuration = Duration.parse("60 seconds")
    held: PositiveDuration = Duration.parse("6 days")
    upkeep: Upkeep = Upkeep()
    pass_environment: list[PassedName] = Field(default_factory=list)

    @model_validator(mode="after")
    def _vacuum_spares_who_waits_and_who_reads(self) -> ProjectFile:
        longest = {"held": self.held, "airflow.execution_timeout": self.airflow.execution_timeout}
        for key, waits in longest.items():
            if self.upkeep.vacuum.delta <= waits.delta:
                raise problem(
                    "contradiction", f"files would go before `{key}:` ({waits}) is over", "upkeep", "vacuum",
                    do="make it longer than that",
                )  # fmt: skip
        return self

    @model_validator(mode="after")
    def _retries_outlast_the_lease(self) -> ProjectFile:
        if self.airflow.retry_delay.delta <= self.lease_ttl.delta:
            raise problem(
                "contradiction", "a retry would meet the dead attempt's lease", "airflow", "retry_delay",
                do=f"make it longer than lease_ttl ({self.lease_ttl})",
            )  # fmt: skip
        return self

    @model_validator(mode="after")
    def _clusters_outlast_their_tasks(self) -> ProjectFile:
        for name, cluster in self.clusters.items():
            longest = self.airflow.execution_timeout
            if isinstance(cluster, StandaloneCluster) and cluster.ttl.delta <= longest.delta:
                raise problem(
                    "contradiction", "the cluster may end before its task does", "clusters", name, "ttl",
                    do=f"make it longer than airflow.execution_timeout ({longest})",
                )  # fmt: skip
        return self


@dataclass(frozen=True)
class Project:
    """A project: project.yaml with every path absolute. Made by ``load_project``."""

    root: Path
    storage_root: str
    metastore_url: str = field(repr=False)
    brokers: dict[str, Broker]
    databases: dict[str, Database]
    clusters: dict[str, Profile]
    airflow: Airflow
    lease_ttl: Duration
    held: Duration
    upkeep: Upkeep
    passed_environment: tuple[str, ...] = ()
    """Names, or beginnings with ``*``, of variables that Spark's processes get besides what they need."""

    @property
    def pipelines_dir(self) -> Path:
        return self.root / "include" / "pipelines"

    @property
    def state_dir(self) -> Path:
        """Jars, logs, the class archive, run files; never committed."""
        return self.root / ".drawdown"

    @classmethod
    def of(cls, root: Path, file: ProjectFile, references: Iterable[str] = ()) -> Project:
        """Relative paths in ``file`` are relative to ``root``; ``references``: variables that it names."""
        storage = file.storage_root if "://" in file.storage_root else str(root / file.storage_root)
        if odd := _ODD.search(storage):
            raise SpecError(
                "project.storage-root",
                f"the storage root holds a {odd[0]!r}, which Hadoop or Delta would read as something else",
                where=storage,
                do="move the project, or give `storage_root:` another path",
            )
        metastore = file.metastore.get_secret_value()
        if metastore.startswith("sqlite:///"):
            metastore = f"sqlite:///{root / metastore.removeprefix('sqlite:///')}"
        return cls(
            root,
            storage,
            metastore,
            file.brokers,
            file.databases,
            file.clusters,
            file.airflow,
            file.lease_ttl,
            file.held,
            file.upkeep,
            tuple(sorted({*references, *file.pass_environment})),
        )
