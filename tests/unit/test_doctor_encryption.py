"""`drawdown doctor` warns of brokers and databases whose traffic others can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.cli.doctor.servers import brokers, databases
from drawdown.spec import Project, load_project

# Nothing listens there: what is said about encryption does not depend on an answer.
LOGIN = "bootstrap_servers: 'localhost:1', sasl_mechanism: PLAIN, username: u, password: '${DD_PASSWORD}'"
DATABASE = "host: localhost, port: 1, dbname: d, user: u"


def project(root: Path, kind: str, server: str) -> Project:
    (root / "include").mkdir()
    (root / "include" / "project.yaml").write_text(f"{kind}:\n  it: {{{server}}}\n")
    return load_project(root)


@pytest.mark.parametrize(("protocol", "warned"), [("SASL_PLAINTEXT", True), ("SASL_SSL", False)])
def test_a_login_without_tls_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, warned: bool
) -> None:
    monkeypatch.setenv("DD_PASSWORD", "p")
    found = list(brokers(project(tmp_path, "brokers", f"{LOGIN}, security_protocol: {protocol}")))
    said = [finding for finding in found if "SASL_PLAINTEXT" in finding.what]
    assert [(finding.level, "SASL_SSL" in finding.do) for finding in said] == [("warn", True)] * warned


@pytest.mark.parametrize(
    ("more", "warned"),
    [
        ("", True),
        (", sslmode: prefer", True),
        (", sslmode: disable", True),
        (", sslmode: verify-full", False),
    ],
)
def test_a_database_that_may_be_asked_in_the_clear_is_warned_of(
    tmp_path: Path, more: str, warned: bool
) -> None:
    found = list(databases(project(tmp_path, "databases", DATABASE + more)))
    said = [finding for finding in found if "unencrypted" in finding.what]
    assert [(finding.level, "verify-full" in finding.do) for finding in said] == [("warn", True)] * warned
