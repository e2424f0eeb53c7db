"""What `drawdown doctor` says about Airflow's pool and connections is typed, and fixes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.airflow.home import LocalAirflow
from tests.support.dag_project import DagProject
from tests.support.doctored import doctored

pytestmark = pytest.mark.timeout(600)

ASKED_OF_AIRFLOW = "clusters: {local: {}, big: {kind: connection, connection: big_spark}}"


@pytest.mark.full
def test_a_pool_and_a_connection_that_airflow_does_not_have(tmp_path: Path) -> None:
    project = DagProject(tmp_path / "project", more=ASKED_OF_AIRFLOW)
    airflow = LocalAirflow(project.root, tmp_path / "airflow")
    airflow.prepare()
    [before] = doctored(project.root, "connection", environment=airflow.environment)
    assert (before["level"], "big takes its master" in before["what"]) == ("warn", True)

    settings = project.root / "include" / "project.yaml"
    settings.write_text(settings.read_text().replace("pool: drawdown", "pool: another"))
    [before, after] = doctored(project.root, "pool", environment=airflow.environment)
    assert (before["level"], after["level"]) == ("fail", "ok")
    assert after["what"] == "another: 1 Spark application at once"
