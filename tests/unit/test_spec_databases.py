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


def refused(sandbox: Sandbox, sink: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        sandbox.pipeline("out", SPEC.replace("SINK", sink), **FILES)
    return caught.value


@pytest.mark.parametrize(
    ("database", "error"),
    [
        (f"{DATABASE}, user: loader, password: hunter2", "spec.secret"),
        (DATABASE, "spec.missing-key"),
        (f"{DATABASE}, {LOGIN}, connection: warehouse_login", "spec.contradiction"),
        (f"{DATABASE}, {LOGIN}, sslrootcert: ca.pem", "spec.no-effect"),
        (f"{DATABASE}, {LOGIN}, sslmode: allow", "spec.wrong-value"),
        (f"{DATABASE}, {LOGIN}, options: -c role=admin", "spec.unknown-key"),
        (f"host: /var/run/postgresql, dbname: warehouse, {LOGIN}", "spec.wrong-value"),
        (f"host: 'a,b', dbname: warehouse, {LOGIN}", "spec.wrong-value"),
        (f"host: localhost, dbname: 'host=evil.example.org', {LOGIN}", "spec.wrong-value"),
        (f"{DATABASE}, {LOGIN}, port: 99999", "spec.wrong-value"),
    ],
)
def test_only_the_listed_words_of_a_connection_can_be_said(tmp_path: Path, database: str, error: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_project(project(tmp_path, database).root)
    assert caught.value.id == error
    assert "hunter2" not in str(caught.value)


def test_a_password_is_shown_by_no_repr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DD_PASSWORD", "correct-horse")
    loaded = load_project(project(tmp_path).root)
    password = loaded.databases["warehouse"].password
    assert password is not None
    assert password.get_secret_value() == "correct-horse"
    assert "correct-horse" not in repr(loaded)


@pytest.mark.parametrize(
    ("sink", "error"),
    [
        ("table: public.out, database: warehose", "spec.unknown-database"),
        ("table: out, database: warehouse", "spec.wrong-value"),
        ("table: pg_catalog.pg_class, database: warehouse", "spec.wrong-value"),
        ("table: public.drawdown_ledger, database: warehouse", "spec.wrong-value"),
        ("table: 'public.out; DROP TABLE x', database: warehouse", "spec.wrong-value"),
        ("database: warehouse", "spec.missing-key"),
        ("table: public.out, database: warehouse, mode: update", "spec.missing-key"),
        ("table: public.out, database: warehouse, path: tables/out", "spec.no-effect"),
        ("table: public.out, database: warehouse, options: {url: 'jdbc:x'}", "spec.unknown-option"),
    ],
)
def test_a_sink_names_a_table_of_a_known_database(tmp_path: Path, sink: str, error: str) -> None:
    assert refused(project(tmp_path), sink).id == error


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
