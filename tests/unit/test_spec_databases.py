"""Databases of project.yaml, and the sinks that write to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from drawdown.credentials import Login, collect, connections_of, with_logins
from drawdown.errors import SpecError
from drawdown.spec import load_pipeline, load_pipelines, load_project
from tests.support.sandbox import Sandbox

DATABASE = "host: db.example.org, dbname: warehouse"
LOGIN = "user: loader, password: '${DD_PASSWORD:-}'"
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: events.ddl}
transform: transform.sql
sink: {format: postgres, schema: events.ddl, SINK}
"""
FILES = {"events_ddl": "k STRING, n BIGINT", "transform_sql": "SELECT * FROM events"}


def project(tmp_path: Path, database: str = f"{DATABASE}, {LOGIN}") -> Sandbox:
    return Sandbox(tmp_path / "project", more=f"databases:\n  warehouse: {{{database}}}\n")


def test_a_password_is_shown_by_no_repr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DD_PASSWORD", "correct-horse")
    loaded = load_project(project(tmp_path).root)
    password = loaded.databases["warehouse"].password
    assert password is not None
    assert password.get_secret_value() == "correct-horse"
    assert "correct-horse" not in repr(loaded)


def test_two_pipelines_cannot_write_one_table(tmp_path: Path) -> None:
    sandbox = project(tmp_path)
    spec = SPEC.replace("SINK", "table: public.out, database: warehouse")
    for name in ("one", "two"):
        sandbox.pipeline(name, spec, **FILES)
    with pytest.raises(SpecError) as caught:
        load_pipelines(sandbox.project)
    assert caught.value.id == "spec.shared-table"


def test_a_login_of_airflow_reaches_the_database_that_names_it(tmp_path: Path) -> None:
    sandbox = project(tmp_path, f"{DATABASE}, connection: warehouse_login")
    sandbox.pipeline("out", SPEC.replace("SINK", "table: public.out, database: warehouse"), **FILES)
    loaded = sandbox.project
    pipelines = [load_pipeline(loaded, "out")]
    assert connections_of(loaded, pipelines) == {"databases.warehouse": "warehouse_login"}
    with pytest.raises(SpecError) as missing:
        collect(loaded, pipelines, {})
    assert missing.value.id == "credentials.missing"
    filled = with_logins(loaded, {"databases.warehouse": Login("loader", SecretStr("hunter2"))})
    assert filled.databases["warehouse"].user == "loader"
    assert "hunter2" not in repr(filled.databases["warehouse"])
