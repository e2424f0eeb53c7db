"""Hands logins of brokers, databases and storages from Airflow connections to the driver in a private file.

Command lines, ``--conf``, Airflow's rendered fields and logs can be read by others. A file of mode 0600 in a
folder of mode 0700, removed once the driver has read it, cannot.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import SecretStr

from drawdown.errors import SpecError
from drawdown.spec import Broker, Database, ObjectStorage, Pipeline, Project

CREDENTIALS = "DRAWDOWN_CREDENTIALS"
"""Environment variable: path of the file."""

LINEAGE_KEY, AIRFLOWS_LINEAGE = "lineage.key", "lineage.airflow"
"""Names in the file: the key of `lineage.connection`, and the transport of Airflow's OpenLineage provider. A
run goes on without them."""


@dataclass(frozen=True)
class Login:
    """A user and its password; the password never shows in a repr."""

    username: str
    password: SecretStr


def connections_of(project: Project, pipelines: Iterable[Pipeline]) -> dict[str, str]:
    """Map ``brokers.NAME``, ``databases.NAME`` or ``storages.NAME`` to the Airflow connection with its login.

    Contains the brokers and databases that these pipelines use, and all storages.
    """
    pipelines = list(pipelines)
    used = {f"brokers.{s.broker}" for p in pipelines for s in p.sources.values() if s.format == "kafka"}
    used |= {f"brokers.{s.arrivals.broker}" for p in pipelines for s in p.sources.values() if s.arrivals}
    used |= {f"brokers.{p.sink.broker}" for p in pipelines if p.sink.format == "kafka"}
    used |= {f"databases.{p.sink.database}" for p in pipelines if p.sink.format == "postgres"}
    used |= {f"storages.{name}" for name in project.storages}
    servers: dict[str, Broker | Database | ObjectStorage] = {
        f"brokers.{n}": each for n, each in project.brokers.items()
    }
    servers |= {f"storages.{n}": each for n, each in project.storages.items()}
    servers |= {f"databases.{n}": each for n, each in project.databases.items()}
    named = {name: servers[name].connection for name in sorted(used)}
    return {name: connection for name, connection in named.items() if connection}


def with_logins(project: Project, logins: Mapping[str, Login]) -> Project:
    """Return the project with these logins, by the names of `connections_of`."""
    brokers, databases = dict(project.brokers), dict(project.databases)
    storages, lineage, airflows = dict(project.storages), project.lineage, project.airflows_lineage
    for place, login in logins.items():
        kind, _, name = place.partition(".")
        if place == LINEAGE_KEY:
            lineage = lineage.with_key(login.password)
        elif place == AIRFLOWS_LINEAGE:
            airflows = login.password
        elif kind == "brokers":
            values = {"username": login.username, "password": login.password}
            brokers[name] = brokers[name].model_copy(update=values)
        elif kind == "storages":
            values = {"access_key": login.username, "secret_key": login.password}
            storages[name] = storages[name].model_copy(update=values)
        else:
            values = {"user": login.username, "password": login.password}
            databases[name] = databases[name].model_copy(update=values)
    known = replace(project, brokers=brokers, databases=databases, storages=storages)
    return replace(known, lineage=lineage, airflows_lineage=airflows)


def hand_over(logins: Mapping[str, Login], folder: Path) -> Path:
    """Write the file for a driver into ``folder`` (mode 0700, used by this run only)."""
    path = folder / "credentials.json"
    content = {name: [login.username, login.password.get_secret_value()] for name, login in logins.items()}
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        json.dump(content, stream)
    return path


def collect(
    project: Project, pipelines: Iterable[Pipeline], environment: Mapping[str, str] = os.environ
) -> Project:
    """In the driver: read the logins, remove the file and return the project with them.

    Raises:
        SpecError: ``credentials.missing``: a broker or database names a connection that was not looked up.
    """
    logins: dict[str, Login] = {}
    if given := environment.get(CREDENTIALS):
        path = Path(given)
        logins = {
            name: Login(user, SecretStr(word)) for name, (user, word) in json.loads(path.read_text()).items()
        }
        path.unlink()
    for name, connection in connections_of(project, pipelines).items():
        if name not in logins:
            raise SpecError(
                "credentials.missing",
                f"the login of {name} is in the Airflow connection {connection!r}, which only an Airflow"
                " task can read",
                where="include/project.yaml",
                do="run the DAG, or set user and password with ${ENV} references instead of `connection`",
            )
    return with_logins(project, logins)
