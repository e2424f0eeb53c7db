"""The settings of a local Airflow, all as environment variables, and its secrets."""

from __future__ import annotations

import base64
import json
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from dev.airflow import sqlite as airflow_sqlite
from drawdown.processes.ports import LOOPBACK

ROOT = Path(__file__).resolve().parents[2]

POOL = "drawdown"
USER = "admin"

_SPARK_CONNECTION = {"conn_type": "spark", "host": "local[*]", "extra": {"deploy-mode": "client"}}
"""``conn_type`` spark with a host and no port makes the host the whole master URL
(SparkSubmitHook._resolve_connection). The binary stays spark-submit, found on PATH: the connection may
name no other one than spark2-submit and spark3-submit; a wrapper goes into the operator's spark_binary."""


def airflow_environment(
    project_root: Path, home: Path, port: int, extra_env: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The whole environment of Airflow's processes: this one's, without other Airflow settings, and ours.

    Args:
        project_root: holds ``dags/`` and ``include/project.yaml``.
        home: AIRFLOW_HOME: database, logs, secrets; made (mode 0700) if missing.
        port: of the api-server on 127.0.0.1; also where tasks report to.
        extra_env: added last, so it wins.
    """
    project_root, home = project_root.resolve(), home.resolve()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    python_folder = Path(sys.executable).parent
    return {
        **inherited,
        "PATH": f"{python_folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYSPARK_PYTHON": sys.executable,
        # Airflow imports `sqlite` from here.
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        "DRAWDOWN_PROJECT": str(project_root),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(_SPARK_CONNECTION),
        **{f"AIRFLOW__{name}": value for name, value in _settings(project_root, home, port).items()},
        **(extra_env or {}),
    }


def admin_password(home: Path) -> str:
    """Password of the user ``admin``; made once, kept in ``<home>/passwords.json`` (mode 0600)."""
    passwords: dict[str, str] = _once(_passwords_file(home), {USER: secrets.token_urlsafe(12)})
    return passwords[USER]


def _settings(project_root: Path, home: Path, port: int) -> dict[str, str]:
    keys: dict[str, str] = _once(
        home / "keys.json",
        {
            "fernet_key": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            "jwt_secret": secrets.token_urlsafe(64),
            "secret_key": secrets.token_urlsafe(32),
        },
    )
    admin_password(home)
    address = f"http://{LOOPBACK}:{port}"
    return {
        "CORE__DAGS_FOLDER": str(project_root / "dags"),
        "CORE__PLUGINS_FOLDER": str(project_root / "plugins"),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "CORE__FERNET_KEY": keys["fernet_key"],
        # One worker process each, forked at start: a drain, its neighbours' preflight and audit.
        "CORE__PARALLELISM": "4",
        # The default asks DNS, which may take seconds on a machine without a network.
        "CORE__HOSTNAME_CALLABLE": "socket.gethostname",
        "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(_passwords_file(home)),
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "DATABASE__SQL_ALCHEMY_CONNECT_ARGS": f"{airflow_sqlite.__name__}.CONNECT_ARGUMENTS",
        "API__HOST": LOOPBACK,
        "API__PORT": str(port),
        "API__BASE_URL": address,
        "API__WORKERS": "1",
        "API__SECRET_KEY": keys["secret_key"],
        "API_AUTH__JWT_SECRET": keys["jwt_secret"],
        # A small machine with few DAGs: look often instead of waiting long between small tasks.
        "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
        "SCHEDULER__JOB_HEARTBEAT_SEC": "2",
        "DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "LOGGING__COLORED_CONSOLE_LOG": "False",
    }


def _passwords_file(home: Path) -> Path:
    return home / "passwords.json"


def _once(file: Path, content: dict[str, str]) -> dict[str, str]:
    """What the file holds; ``content`` is written first (mode 0600) if it is not there yet."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    aside = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        json.dump(content, stream)
    try:
        # A link fails if another process was first; the file is then whole, never half written.
        file.hardlink_to(aside)
    except FileExistsError:
        pass
    finally:
        aside.unlink()
    loaded: dict[str, str] = json.loads(file.read_text())
    return loaded
