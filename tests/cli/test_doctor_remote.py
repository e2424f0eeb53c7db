"""`drawdown doctor` names what runs of services have left, once nothing needs it any more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from drawdown.cli.doctor import remote_leftovers as module
from drawdown.cli.doctor.remote_leftovers import remote_clusters
from drawdown.launch.remote_requests.request import name_of
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run
from drawdown.spec import Project, load_project
from tests.airflow.test_remote_clusters import make

END = "aws emr terminate-clusters --region eu-central-1 --cluster-ids"


def tagged(cluster: str, run: str, deadline: datetime) -> dict[str, str]:
    text = deadline.astimezone(UTC).strftime("%Y%m%dt%H%M%Sz")
    return {"what": f"EMR cluster {cluster}", "run": run, "deadline": text, "end": f"{END} {cluster}"}


def of_emr(*found: dict[str, str], failed: str = "") -> list[dict[str, Any]]:
    return [{"profile": "emr", "found": list(found), "failed": failed}]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(module, "_is_installed", lambda provider: provider == "amazon")
    project = load_project(make(tmp_path / "project", metastore="sqlite:///m.db").root)
    with Metastore.open(project.metastore_url):
        pass
    return project


@pytest.mark.capability("HOST-12")
def test_only_what_is_past_its_deadline_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    now, hour = datetime.now(UTC), timedelta(hours=1)
    answer = of_emr(tagged("j-1", name_of("a"), now - hour), tagged("j-2", name_of("b"), now + hour))
    monkeypatch.setattr(module, "_ask", lambda *_: answer)
    [check] = remote_clusters(project)
    assert (check.level, check.do) == ("warn", f"{END} j-1")
    assert "is past its deadline" in check.what
    assert name_of("a") in check.what


@pytest.mark.capability("HOST-12")
def test_a_cluster_that_has_outlived_its_run_is_named_before_its_deadline(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = datetime.now(UTC) + timedelta(days=1)
    names = [name_of(f"clicks.{run}", project.storage_root) for run in ("ended", "under_way")]
    answer = of_emr(*(tagged(f"j-{number}", name, later) for number, name in enumerate(names)))
    monkeypatch.setattr(module, "_ask", lambda *_: answer)
    with Metastore.open(project.metastore_url) as metastore:
        for run in ("ended", "under_way"):
            metastore.start_run(Run(run, "clicks", origin={"dag_id": "clicks", "dag_run_id": run}))
        metastore.finish_run("ended", "failed")
    assert list(remote_clusters(project)) == []  # A retry, and the task that takes it down, still have time.
    monkeypatch.setattr(module, "_ENDING", timedelta(days=-1))
    [check] = remote_clusters(project)
    assert "EMR cluster j-0" in check.what
    assert "has outlived its run" in check.what


def test_a_service_that_cannot_be_asked_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ask", lambda *_: of_emr(failed="Unable to locate credentials"))
    [check] = remote_clusters(project)
    assert "Unable to locate credentials" in check.what
    assert check.do == "correct the Airflow connection aws_default"


def test_a_provider_that_is_not_installed_is_no_finding(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(module, "_ask", lambda *_: pytest.fail("asked"))
    assert list(remote_clusters(project)) == []
