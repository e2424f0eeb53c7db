"""`drawdown doctor` names what runs of services have left, found by its tags."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from drawdown.cli.doctor.remote_clusters import remote_clusters
from drawdown.launch.remote_requests import leftovers
from drawdown.launch.remote_requests.leftovers import Tagged
from drawdown.launch.remote_requests.request import name_of
from drawdown.metastore import Metastore
from drawdown.spec import load_project
from tests.airflow.test_remote_clusters import make

NOW = datetime.now(UTC)


@pytest.mark.capability("HOST-12")
def test_only_what_is_past_its_deadline_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = load_project(make(tmp_path / "project", metastore="sqlite:///m.db").root)
    with Metastore.open(project.metastore_url):
        pass
    found = [
        Tagged("EMR cluster j-1", name_of("a"), NOW - timedelta(hours=1), "aws emr terminate-clusters j-1"),
        Tagged("EMR cluster j-2", name_of("b"), NOW + timedelta(hours=1), "aws emr terminate-clusters j-2"),
    ]
    monkeypatch.setattr(leftovers, "still_there", lambda profile: found if profile.kind == "emr" else [])
    [check] = remote_clusters(project)
    assert (check.level, check.do) == ("warn", "aws emr terminate-clusters j-1")
    assert "j-1" in check.what
    assert name_of("a") in check.what


def test_a_provider_that_is_not_installed_is_no_finding(tmp_path: Path) -> None:
    project = load_project(make(tmp_path / "project", metastore="sqlite:///m.db").root)
    with Metastore.open(project.metastore_url):
        pass
    assert list(remote_clusters(project)) == []
