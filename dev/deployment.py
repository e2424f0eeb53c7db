"""Prepare a deployment before its parts start: the databases' tables, the pool, the admin's login.

``python -m dev.deployment``, in the environment of docker-compose.yaml's service airflow-init;
called again, it brings everything up to date.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from dev.airflow import database as airflow_database
from dev.airflow.environment import USER
from drawdown.errors import DrawdownError, MachineError
from drawdown.metastore import Metastore
from drawdown.spec import load_project

LOGIN = "AIRFLOW_ADMIN_PASSWORD"
LOGINS_FILE = "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"
SLOTS = 2
"""How many Spark applications may run at once within the scheduler's memory limit."""


def main() -> int:
    """Prepare everything; return 0 or the exit code of the error, which is printed without a trace."""
    try:
        write_password(Path(_wanted(LOGINS_FILE)), _wanted(LOGIN))
        _remove_former_logins()
        Metastore.upgrade(load_project().metastore_url)
    except DrawdownError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    airflow_database.bring_up_to_date(SLOTS)
    return 0


def write_password(file: Path, password: str) -> None:
    """Write the file (mode 0600) from which SimpleAuthManager reads the login of ``admin``."""
    aside = file.with_name(f"{file.name}.{os.getpid()}")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        json.dump({USER: password}, stream)
    aside.replace(file)


def _remove_former_logins() -> None:
    """Remove the file of deployments of before, which the scheduler's volume has, too."""
    Path(os.environ["AIRFLOW_HOME"], "passwords.json").unlink(missing_ok=True)


def _wanted(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise MachineError(
            "deployment.variable", f"{variable} is not set", where="the environment", do="make env"
        )
    return value


if __name__ == "__main__":
    sys.exit(main())
