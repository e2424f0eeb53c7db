"""A job for a cluster elsewhere: its driver's arguments, from which every service's request is built.

The project is in a folder on those machines (the profile's `home`), so a request names files in that folder
and uploads none. Secrets are in the environment there (docs/clusters.md), never in a request.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from drawdown.credentials import connections_of
from drawdown.errors import SpecError
from drawdown.launch.settings import LOGGING, logging, of_every_driver, with_profile
from drawdown.launch.sizing import Size
from drawdown.spec import Pipeline, Project, RemoteCluster

RUN_TAG, INSTANCE_TAG, DEADLINE_TAG = "drawdown-run", "drawdown-instance", "drawdown-deadline"
"""Tags (labels) of everything that a request creates: by them `drawdown doctor` finds what was left over."""

_DEADLINE = "%Y%m%dt%H%M%Sz"
"""Only small letters and digits: Google's labels take nothing else."""

_BESIDE_THE_JOB = timedelta(hours=1)
"""Time to start, and to wait for a slot in the pool."""

_MOST_TRIES = 255

_LOGGING = PurePosixPath(*LOGGING.parts[-4:])
"""Path below `home`."""


@dataclass(frozen=True)
class JobRequest:
    """One job for one run.

    Attributes:
        size: number of executors, each on its own machine if the service has machines, and why so many.
        job: name of a file in `jobs`.
        arguments: the job's arguments, without `--project`.
        key: the run's key.
        instance: of the try that requests it, see `new_instance`.
    """

    project: Project
    profile: RemoteCluster
    size: Size
    job: str
    arguments: tuple[str, ...]
    key: str
    instance: str

    @property
    def workers(self) -> int:
        return self.size.workers

    @property
    def run_name(self) -> str:
        """Return the run's name, the same for every try."""
        return name_of(self.key, self.project.storage_root)

    @property
    def name(self) -> str:
        """Return the name of what this try creates: nothing else in the account ever has it."""
        return f"{self.run_name}-{self.instance}"

    def is_of_an_earlier_try(self, name: str) -> bool:
        """Whether something with this name was created for the same run by a try before this one."""
        return is_of_run(name, self.run_name) and _try_of(name, self.run_name) < int(self.instance[:2], 16)

    @property
    def longest(self) -> timedelta:
        """Return how long all tries together may take."""
        airflow = self.project.airflow
        tries = airflow.retries + 1
        return tries * (airflow.execution_timeout.delta + airflow.retry_delay.delta) + _BESIDE_THE_JOB

    @property
    def tags(self) -> dict[str, str]:
        """Return the run's name, the try's instance, and the time at which nothing of it may be left."""
        deadline = datetime.now(UTC) + self.longest
        return {
            RUN_TAG: self.run_name,
            INSTANCE_TAG: self.instance,
            DEADLINE_TAG: deadline.strftime(_DEADLINE),
        }

    @property
    def application(self) -> str:
        """Return the path of the program that the driver runs."""
        return f"{self.profile.home}/jobs/{self.job}.py"

    @property
    def job_arguments(self) -> list[str]:
        """Return the program's arguments."""
        return ["--project", self.profile.home, *self.arguments]

    @property
    def conf(self) -> dict[str, str]:
        """Return its Spark settings, without a master."""
        home, profile = self.profile.home, self.profile
        jars = f"{home}/.drawdown/jars/*"
        ours = of_every_driver(profile) | {
            "spark.driver.extraClassPath": jars,
            "spark.executor.extraClassPath": jars,
            "spark.driver.extraJavaOptions": logging(PurePosixPath(home) / _LOGGING),
            "spark.executor.instances": str(self.workers),
            "spark.executor.cores": str(profile.worker_cores),
            "spark.executor.memory": profile.worker_memory,
            "spark.dynamicAllocation.enabled": "false",
            **self.size.settings,
            "spark.pyspark.python": f"{home}/.venv/bin/python",
            "spark.executorEnv.PYTHONPATH": f"{home}/include",
            # PySpark passes timestamps to Python code in the time zone of its process.
            "spark.executorEnv.TZ": "UTC",
        }
        return with_profile(ours, profile)

    @property
    def launched(self) -> list[str]:
        """Return the arguments of jobs/launch.py, which submits to YARN with this project's Spark."""
        settings = [part for key, value in self.conf.items() for part in ("--conf", f"{key}={value}")]
        submit = ["--master", "yarn", "--deploy-mode", "client", "--name", self.name, *settings]
        return [self.profile.home, *submit, self.application, *self.job_arguments]


def name_of(key: str, of: str = "") -> str:
    """Return a name for a run, the same for every try: at most 44 letters, digits, hyphens.

    Args:
        of: the project's storage root: runs of two projects can have the same key in the same account, and
            neither may end what the other has started.
    """
    readable = re.sub(r"[^a-z0-9]+", "-", key.lower())[:24].strip("-")
    return f"drawdown-{readable}-{sha256(f'{key}{of}'.encode()).hexdigest()[:10]}"


def new_instance(try_number: int) -> str:
    """Return what tells a try's resources from those of others: the try, and a random part."""
    return f"{min(try_number, _MOST_TRIES):02x}{secrets.token_hex(2)}"


def is_of_run(name: str, run_name: str) -> bool:
    """Whether something was created for a run, by whichever try; older versions wrote no instance."""
    return name == run_name or re.fullmatch(rf"{re.escape(run_name)}-[0-9a-f]{{6}}", name) is not None


def _try_of(name: str, run_name: str) -> int:
    return 0 if name == run_name else int(name.removeprefix(f"{run_name}-")[:2], 16)


def deadline_of(tag: str) -> datetime | None:
    """Return the time that a tag names; None if it names none."""
    try:
        return datetime.strptime(tag, _DEADLINE).replace(tzinfo=UTC)
    except ValueError:
        return None


def refuse_unreachable(project: Project, pipelines: Iterable[Pipeline], profile: RemoteCluster) -> None:
    """Refuse what a driver elsewhere could not reach.

    Raises:
        SpecError: ``cluster.storage``, ``cluster.metastore``, ``cluster.login``.
    """
    driver, where = f"the driver of kind {profile.kind} runs elsewhere", "include/project.yaml"
    scheme = project.storage_root.partition("://")[0] if "://" in project.storage_root else "file"
    if scheme == "file":
        raise SpecError(
            "cluster.storage",
            f"{driver}, and the storage root is a folder of this machine",
            where=where,
            do="set `storage_root:` to an address, for example s3a://bucket/folder",
        )
    if project.metastore_url.startswith("sqlite:"):
        raise SpecError(
            "cluster.metastore",
            f"{driver}, and the metastore is a file of this machine",
            where=where,
            do="let `metastore:` be a PostgreSQL server: postgresql+psycopg://...",
        )
    for server, connection in connections_of(project, pipelines).items():
        raise SpecError(
            "cluster.login",
            f"{driver}, and the login of {server} is in the Airflow connection {connection!r}",
            where=where,
            do="give user and password by ${ENV} references, and the variables to the driver's environment",
        )


def joined(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two requests: mappings are merged at every depth, for other values ours wins."""
    whole = dict(theirs)
    for key, value in ours.items():
        both = isinstance(value, Mapping) and isinstance(whole.get(key), Mapping)
        whole[key] = joined(whole[key], value) if both else value
    return whole
