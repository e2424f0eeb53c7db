"""`make env`: every secret is made, private, different each time, and never made twice."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import make_url

from dev.deployment_env import write_env
from drawdown.errors import MachineError
from tests.support.compose import ROOT, example, resolved


def _made(folder: Path) -> dict[str, str]:
    folder.mkdir()
    (folder / ".env.example").write_text((ROOT / ".env.example").read_text())
    lines = write_env(folder).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_every_empty_variable_gets_a_secret_and_every_other_keeps_its_value(tmp_path: Path) -> None:
    made = _made(tmp_path / "one")
    assert list(made) == list(example())
    assert all(made[name] == value for name, value in example().items() if value)
    secrets = [made[name] for name, value in example().items() if not value]
    assert len(set(secrets)) == len(secrets) > 0
    assert all(len(secret) == 44 for secret in secrets)


def test_two_installations_share_no_secret(tmp_path: Path) -> None:
    one, other = (_made(tmp_path / name) for name in ("one", "other"))
    assert [name for name, value in one.items() if other[name] == value] == ["AIRFLOW_PORT"]


def test_secrets_fit_where_the_compose_file_puts_them(tmp_path: Path) -> None:
    made = _made(tmp_path / "one")
    environment = resolved(made)["services"]["airflow-scheduler"]["environment"]
    Fernet(environment["AIRFLOW__CORE__FERNET_KEY"])
    for name, password in (
        ("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW_DB_PASSWORD"),
        ("DRAWDOWN_METASTORE", "METASTORE_PASSWORD"),
    ):
        assert make_url(environment[name]).password == made[password]


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    _made(tmp_path / "one")
    assert (tmp_path / "one" / ".env").stat().st_mode & 0o777 == 0o600


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / ".env.example").write_text("A=\n")
    (tmp_path / ".env").write_text("A=mine\n")
    with pytest.raises(MachineError) as refused:
        write_env(tmp_path)
    assert refused.value.id == "deployment.env-exists"
    assert (tmp_path / ".env").read_text() == "A=mine\n"


def test_the_command_needs_no_environment_of_ours(tmp_path: Path) -> None:
    """Only the interpreter and its standard library, as on a machine that runs nothing but containers."""
    for name in ("include/drawdown/errors.py", "include/drawdown/__init__.py", ".env.example"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "dev").mkdir()
    for name in ("dev/__init__.py", "dev/deployment_env.py"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    command = ["python3", "-S", "-m", "dev.deployment_env"]
    environment = {"PYTHONPATH": str(tmp_path / "include"), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "docker compose up" in done.stdout
    again = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert again.returncode == 8
    assert "deployment.env-exists" in again.stderr
    assert "Traceback" not in again.stderr


def test_the_make_target_runs_it() -> None:
    shown = subprocess.run(["make", "-n", "env"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "-m dev.deployment_env" in shown
