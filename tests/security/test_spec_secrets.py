"""A broker's password and the metastore's are never shown, printed, dumped or written in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.spec import load_project
from tests.support.spec_folders import SpecFolders

SECRET = "hunter2-very-secret"
PROJECT = """\
metastore: ${DD_METASTORE:-sqlite:///m.db}
brokers:
  default:
    bootstrap_servers: ${DD_SERVERS:-localhost:9092}
    security_protocol: ${DD_PROTOCOL:-SASL_SSL}
    sasl_mechanism: ${DD_MECHANISM:-PLAIN}
    username: ${DD_USERNAME:-me}
    password: ${DD_PASSWORD:-}
clusters:
  local: {master: "${DD_MASTER:-local[2]}"}
airflow: {retries: "${DD_RETRIES:-2}", retry_delay: "${DD_DELAY:-2 minutes}"}
"""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SpecFolders:
    monkeypatch.setenv("DD_PASSWORD", SECRET)
    return SpecFolders(tmp_path, PROJECT)


def test_the_password_reaches_who_asks_for_it_and_nobody_else(
    folders: SpecFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DD_METASTORE", f"postgresql+psycopg://u:{SECRET}@h/db")
    project = load_project(folders.root)
    broker = project.brokers["default"]
    assert broker.password is not None
    assert broker.password.get_secret_value() == SECRET
    assert SECRET in project.metastore_url
    for shown in (
        repr(project),
        str(project),
        repr(broker),
        str(broker),
        broker.model_dump_json(),
        f"{broker.model_dump()}",
    ):
        assert SECRET not in shown


@pytest.mark.parametrize(
    "variable",
    ["DD_SERVERS", "DD_PROTOCOL", "DD_MECHANISM", "DD_METASTORE", "DD_MASTER", "DD_RETRIES", "DD_DELAY"],
)
def test_a_secret_in_the_wrong_variable_is_not_in_the_error(
    folders: SpecFolders, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, SECRET)
    with pytest.raises(SpecError) as caught:
        load_project(folders.root)
    error: BaseException | None = caught.value
    assert caught.value.where.startswith("include/project.yaml:")
    while error is not None:
        assert SECRET not in f"{error} {error!r} {error.args}"
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("${DD_PASSWORD:-}", SECRET),
        ("${DD_PASSWORD:-}", f"${{DD_PASSWORD:-{SECRET}}}"),
        ("${DD_PASSWORD:-}", f"{SECRET}${{DD_PASSWORD}}"),
        ("${DD_METASTORE:-sqlite:///m.db}", f"postgresql+psycopg://u:{SECRET}@h/db"),
        ("${DD_METASTORE:-sqlite:///m.db}", f"${{DD_METASTORE:-postgresql+psycopg://u:{SECRET}@h/db}}"),
        ("${DD_METASTORE:-sqlite:///m.db}", f"postgresql+psycopg://u:${{DD_P:-{SECRET}}}@h/db"),
        ("${DD_METASTORE:-sqlite:///m.db}", f"postgresql+psycopg://h/db?user=u&password={SECRET}"),
    ],
)
def test_a_password_written_in_the_file_is_refused(folders: SpecFolders, old: str, new: str) -> None:
    assert old in PROJECT
    folders.project_file.write_text(PROJECT.replace(old, new))
    with pytest.raises(SpecError) as caught:
        load_project(folders.root)
    assert caught.value.id == "spec.secret"
    assert SECRET not in str(caught.value)


def test_a_metastore_password_by_reference_is_fine(folders: SpecFolders) -> None:
    folders.project_file.write_text("metastore: postgresql+psycopg://u:${DD_PASSWORD}@h/db\n")
    assert load_project(folders.root).metastore_url == f"postgresql+psycopg://u:{SECRET}@h/db"
