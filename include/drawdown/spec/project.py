"""project.yaml: the settings that differ between environments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, model_validator

from drawdown.errors import SpecError
from drawdown.spec.alerts import Alerts, OwnAlerts
from drawdown.spec.clusters.cluster import LocalCluster, RunCluster
from drawdown.spec.clusters.profile import Profile
from drawdown.spec.connections.alert_target import AlertTarget
from drawdown.spec.connections.broker import Broker
from drawdown.spec.connections.database import Database
from drawdown.spec.connections.lineage_backend import LineageBackend
from drawdown.spec.connections.metrics_access import MetricsAccess
from drawdown.spec.connections.object_storage import ObjectStorage, is_object_storage, scheme_of
from drawdown.spec.limits import Limits
from drawdown.spec.reading.environment import AIRFLOWS_OWN
from drawdown.spec.samples import Samples
from drawdown.spec.scheduling.airflow_tasks import Airflow, OwnTasks
from drawdown.spec.sql_limits import SqlLimits
from drawdown.spec.upkeep import RowRetention, Upkeep
from drawdown.values.duration import Duration, PositiveDuration
from drawdown.values.model import Approvers, Name, SpecModel, problem
from drawdown.values.nearest import did_you_mean
from drawdown.values.paths import SinkPath

_SCHEMES = ("file", "s3", "s3a", "gs", "abfs", "abfss", "hdfs")
# Hadoop expands globs in the paths of readers; delta-rs decodes %20 and the like.
_ODD = re.compile(r"[%*?{}\[\]]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def _storage_root(value: str) -> str:
    scheme, found, rest = value.partition("://")
    if _CONTROL.search(value) or value.startswith("~"):
        raise problem("wrong-value", "is not a path or address", do="write a path, or s3://bucket/folder")
    if found and scheme not in _SCHEMES:
        raise problem(
            "wrong-value", f"an address must start with one of {', '.join(_SCHEMES)}", do="use one of them"
        )
    if found and "@" in rest.split("/", 1)[0] and not scheme.startswith("abfs"):
        raise problem("secret", "an address must not contain credentials", do="pass them in the environment")
    return value


def _metastore(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not text.startswith(("sqlite:///", "postgresql+psycopg://")) or text in (
        "sqlite:///",
        "sqlite:///:memory:",
    ):
        raise problem(
            "wrong-value",
            "is not a metastore address",
            do="write sqlite:///path/file.db or postgresql+psycopg://...",
        )
    return value


def _local_alone() -> dict[str, Profile]:
    return {"local": LocalCluster()}


def _not_of_airflow(name: str) -> str:
    if name.startswith(AIRFLOWS_OWN):
        raise problem(
            "airflow-keys",
            f"{name} belongs to Airflow and is not passed to drivers",
            do="use a variable with another name",
        )
    return name


PassedName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}\*?$"), AfterValidator(_not_of_airflow)
]


class ProjectFile(SpecModel):
    """The keys of project.yaml, with references resolved."""

    storage_root: Annotated[str, Field(min_length=1), AfterValidator(_storage_root)] = ".drawdown/storage"
    metastore: Annotated[SecretStr, AfterValidator(_metastore)] = SecretStr(
        "sqlite:///.drawdown/metastore.db"
    )
    storages: dict[Name, ObjectStorage] = Field(default_factory=dict)
    landing: list[SinkPath] = Field(default_factory=lambda: ["landing"])
    brokers: dict[Name, Broker] = Field(default_factory=dict)
    databases: dict[Name, Database] = Field(default_factory=dict)
    clusters: dict[Name, Profile] = Field(default_factory=_local_alone, min_length=1)
    airflow: Airflow = Airflow()
    lease_ttl: PositiveDuration = Duration.parse("60 seconds")
    held: PositiveDuration = Duration.parse("6 days")
    upkeep: Upkeep = Upkeep()
    samples: Samples | None = None
    retention: RowRetention = RowRetention()
    limits: Limits = Limits()
    lineage: LineageBackend = LineageBackend()
    metrics: MetricsAccess = MetricsAccess()
    alert_targets: dict[Name, AlertTarget] = Field(default_factory=dict)
    alerts: Alerts = Alerts()
    approvers: Approvers = Field(default_factory=list)
    pass_environment: list[PassedName] = Field(default_factory=list)
    sql_limits: SqlLimits = SqlLimits()

    @model_validator(mode="after")
    def _vacuum_spares_who_waits_and_who_reads(self) -> ProjectFile:
        longest = {"held": self.held, "airflow.execution_timeout": self.airflow.execution_timeout}
        for key, waits in longest.items():
            if self.upkeep.vacuum.delta <= waits.delta:
                raise problem(
                    "contradiction", f"files would be deleted before `{key}:` ({waits})"
                                     " is over", "upkeep", "vacuum",
                    do="make it longer than that",
                )  # fmt: skip
        return self

    @model_validator(mode="after")
    def _a_bucket_is_reached_in_one_way(self) -> ProjectFile:
        first: dict[str, tuple[str, ObjectStorage]] = {}
        for name, each in self.storages.items():
            other, known = first.setdefault(each.bucket, (name, each))
            if known.model_copy(update={"address": each.address}) != each:
                raise problem(
                    "contradiction", f"reaches the bucket of `{other}` in another way", "storages", name,
                    do="give both the same endpoint, region and key: Hadoop knows one way for each bucket",
                )  # fmt: skip
        return self

    @model_validator(mode="after")
    def _alerts_go_to_known_targets(self) -> ProjectFile:
        for index, name in enumerate(self.alerts.to or ()):
            if name not in self.alert_targets:
                what = f"there is no alert target {name!r}; {did_you_mean(name, self.alert_targets)}"
                do = "correct the name, or add it to `alert_targets:`"
                raise problem("unknown-target", what, "alerts", "to", index, do=do)
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
            if isinstance(cluster, RunCluster) and cluster.ttl.delta <= longest.delta:
                raise problem(
                    "contradiction", "the cluster may end before its task does", "clusters", name, "ttl",
                    do=f"make it longer than airflow.execution_timeout ({longest})",
                )  # fmt: skip
        return self


@dataclass(frozen=True)
class Project:
    """A project: project.yaml with every path absolute. Made by ``load_project``."""

    root: Path
    state: Path
    """The base of relative paths: the root, or DRAWDOWN_STATE."""
    storage_root: str
    storages: dict[str, ObjectStorage]
    metastore_url: str = field(repr=False)
    brokers: dict[str, Broker]
    databases: dict[str, Database]
    clusters: dict[str, Profile]
    airflow: Airflow
    lease_ttl: Duration
    held: Duration
    upkeep: Upkeep
    passed_environment: tuple[str, ...] = ()
    """Names, or prefixes with ``*``, of additional environment variables for Spark's processes."""
    samples: Samples | None = None
    """Which columns of sample rows are shown, unless the pipeline sets it."""
    approvers: tuple[str, ...] = ()
    """Who decides in Airflow, unless the pipeline sets it; empty: everyone who may edit the DAG run."""
    retention: RowRetention = field(default_factory=RowRetention)
    """How long copies of rows are kept, unless the pipeline sets it."""
    limits: Limits = field(default_factory=Limits)
    """How large a record may be, unless the source sets it."""
    lineage: LineageBackend = field(default_factory=LineageBackend)
    """Where lineage events go."""
    airflows_lineage: SecretStr | None = field(default=None, repr=False)
    """The transport of Airflow's OpenLineage provider, as JSON; used when nothing else is configured."""

    metrics: MetricsAccess = field(default_factory=MetricsAccess)
    """Who may read /drawdown/metrics."""
    alert_targets: dict[str, AlertTarget] = field(default_factory=dict)
    """Where alerts go, by name."""
    alerts: Alerts = field(default_factory=Alerts)
    """Of what somebody is told."""
    landing: tuple[str, ...] = ("landing",)
    """Folders, below the storage root and each of `storages`, in which `cleanSource` may clean."""
    sql_limits: SqlLimits = field(default_factory=SqlLimits)
    """How large one result of an SQL function may be."""

    def alerts_of(self, own: OwnAlerts) -> Alerts:
        """Return what is announced of a pipeline with the settings `own`."""
        return self.alerts.instead(own)

    def tasks_of(self, own: OwnTasks) -> Airflow:
        """Return Airflow's task settings for a pipeline with the settings `own`."""
        return self.airflow.instead(own)

    def access_to(self, address: str) -> ObjectStorage | None:
        """Return the entry of `storages:` for the bucket of this address; None: as the machine reaches it."""
        bucket = urlsplit(address).netloc
        return next((each for each in self.storages.values() if each.bucket == bucket), None)

    @property
    def bucket_schemes(self) -> frozenset[str]:
        """Return ``s3`` and ``gs``, as far as the storage root or an entry of `storages:` is one."""
        addresses = (self.storage_root, *(each.address for each in self.storages.values()))
        return frozenset(scheme_of(each) for each in addresses if is_object_storage(each))

    @property
    def buckets_without_a_key(self) -> tuple[str, ...]:
        """Return the addresses of buckets that are reached by the machine's own key or role."""
        found = [each.address for each in self.storages.values() if not each.has_key]
        if is_object_storage(self.storage_root) and self.access_to(self.storage_root) is None:
            found.append(self.storage_root)
        return tuple(found)

    @property
    def pipelines_dir(self) -> Path:
        return self.root / "include" / "pipelines"

    @property
    def state_dir(self) -> Path:
        """Return the folder for jars, logs, the class archive and run files; never committed."""
        return self.state / ".drawdown"

    @classmethod
    def of(cls, root: Path, state: Path, file: ProjectFile, references: Iterable[str] = ()) -> Project:
        """Relative paths in ``file`` are relative to ``state``; ``references``: variables that it names."""
        storage = file.storage_root if "://" in file.storage_root else str(state / file.storage_root)
        if odd := _ODD.search(storage):
            raise SpecError(
                "project.storage-root",
                f"the storage root holds a {odd[0]!r}, which Hadoop or Delta would misread",
                where=storage,
                do="move the project, or give `storage_root:` another path",
            )
        metastore = file.metastore.get_secret_value()
        if metastore.startswith("sqlite:///"):
            metastore = f"sqlite:///{state / metastore.removeprefix('sqlite:///')}"
        return cls(
            root,
            state,
            storage,
            file.storages,
            metastore,
            file.brokers,
            file.databases,
            file.clusters,
            file.airflow,
            file.lease_ttl,
            file.held,
            file.upkeep,
            tuple(sorted({*references, *file.pass_environment})),
            file.samples,
            tuple(file.approvers),
            file.retention,
            limits=file.limits,
            lineage=file.lineage,
            metrics=file.metrics,
            alert_targets=file.alert_targets,
            alerts=file.alerts,
            landing=tuple(file.landing),
            sql_limits=file.sql_limits,
        )
