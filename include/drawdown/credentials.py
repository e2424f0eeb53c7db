"""Logins of brokers that stand in an Airflow connection: handed to the driver in a private file.

A command line, a ``--conf``, Airflow's rendered fields and logs are read by others; a file of mode 0600
in a folder of mode 0700 that lives until the driver has read it is not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import SecretStr

from drawdown.errors import SpecError
from drawdown.spec import Pipeline, Project

CREDENTIALS = "DRAWDOWN_CREDENTIALS"
"""Environment variable: path of the file."""


@dataclass(frozen=True)
class Login:
    """A user and its password; the password never shows in a repr."""

    username: str
    password: SecretStr


def connections_of(project: Project, pipelines: Iterable[Pipeline]) -> dict[str, str]:
    """Broker name -> id of the Airflow connection with its login, for the brokers these pipelines use."""
    pipelines = list(pipelines)
    used = {s.broker for p in pipelines for s in p.sources.values() if s.format == "kafka"}
    used |= {p.sink.broker for p in pipelines if p.sink.format == "kafka"}
    named = {name: project.brokers[name].connection for name in sorted(used)}
    return {name: connection for name, connection in named.items() if connection}


def with_logins(project: Project, logins: Mapping[str, Login]) -> Project:
    """The project with these brokers' logins in place."""
    filled = {
        name: project.brokers[name].model_copy(
            update={"username": login.username, "password": login.password}
        )
        for name, login in logins.items()
    }
    return replace(project, brokers={**project.brokers, **filled})


def hand_over(logins: Mapping[str, Login], folder: Path) -> Path:
    """Write the file for a driver into ``folder`` (mode 0700, of this run alone)."""
    path = folder / "credentials.json"
    content = {name: [login.username, login.password.get_secret_value()] for name, login in logins.items()}
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        json.dump(content, stream)
    return path


def collect(
    project: Project, pipelines: Iterable[Pipeline], environment: Mapping[str, str] = os.environ
) -> Project:
    """In the driver: the project with the logins that were handed over. The file is removed.

    Raises:
        SpecError: ``credentials.missing``: a broker names a connection, and nobody looked it up.
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
                f"the login of broker {name!r} is in the Airflow connection {connection!r}, "
                "which only a task of Airflow can read",
                where="include/project.yaml",
                do="run the DAG, or give username and password by ${ENV} references instead of `connection`",
            )
    return with_logins(project, logins)
