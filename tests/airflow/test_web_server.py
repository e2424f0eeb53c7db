"""What a user meets in a running Airflow: the page of a run's records, and backfills, of replays only."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import quote

import pytest
from deltalake import DeltaTable

from drawdown.errors import MachineError
from drawdown.machine.airflow_home import LocalAirflow
from drawdown.metastore import Metastore
from drawdown.metastore.records import Counts, Run
from tests.support.dag_project import ROOT, DagProject

pytestmark = pytest.mark.timeout(240)

RUN_ID = "manual__2026-01-01T00:00:00+00:00"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> DagProject:
    project = DagProject(tmp_path_factory.mktemp("web") / "project")
    project.pipeline("events", 'schedule: "5 * * * *"')
    write_days(project, "SELECT at, id FROM events")
    (project.root / "plugins").symlink_to(ROOT / "plugins")
    return project


@pytest.fixture(scope="module")
def airflow(project: DagProject) -> Iterator[LocalAirflow]:
    with Metastore.open(f"sqlite:///{project.root / 'metastore.db'}") as metastore:
        record_a_failed_run(metastore)
    with LocalAirflow(project.root, project.root / "airflow") as started:
        yield started


def record_a_failed_run(metastore: Metastore) -> None:
    origin = {"dag_id": "events", "dag_run_id": RUN_ID}
    lease = metastore.acquire("events", "test", "run-1", timedelta(minutes=1))
    metastore.start_run(Run("run-1", "events", origin=origin))
    error = {"id": "source.unreadable", "what": "<script>alert(1)</script>", "where": "", "do": "look"}
    metastore.finish_run("run-1", "failed", counts=Counts(read=1234), error=error)
    metastore.release(lease)


def page(airflow: LocalAirflow, token: str | None) -> str:
    address = f"{airflow.url}/drawdown/runs/events/{quote(RUN_ID, safe='')}"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=30) as response:
        return str(response.read().decode())


def token_of(airflow: LocalAirflow) -> str:
    _, answer = airflow.api._request(
        "POST", "/auth/token", {"username": airflow.user, "password": airflow.password}
    )
    return str(answer["access_token"])


def test_the_page_shows_the_run_with_all_text_escaped(airflow: LocalAirflow) -> None:
    text = page(airflow, token_of(airflow))
    assert "<td>1,234</td>" in text
    assert "source.unreadable" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert not re.search("<script", text)


def test_the_page_is_for_those_who_may_read_the_dag(airflow: LocalAirflow) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        page(airflow, None)
    assert refused.value.code == 401


def test_a_backfill_of_a_drain_is_refused(airflow: LocalAirflow) -> None:
    airflow.unpause("events")
    body = {"dag_id": "events", "from_date": "2026-01-01T00:00:00Z", "to_date": "2026-01-02T00:00:00Z"}
    with pytest.raises(MachineError, match="backfill"):
        airflow.api.call("POST", "backfills", body=body)


@pytest.mark.timeout(900)
def test_a_backfill_of_a_replay_replaces_its_intervals(project: DagProject, airflow: LocalAirflow) -> None:
    """By Airflow's own command: one run for each day, all tasks real."""
    land_days(project)
    command_line(project, airflow, "drawdown.cli.main", "run", "days")
    assert days(project) == {"2024-01-01": 1, "2024-01-02": 2, "2024-01-03": 3}
    (project.root / "include/pipelines/days/transform.sql").write_text("SELECT at, id * 10 AS id FROM events")
    airflow.unpause("days__replay")
    command_line(
        project, airflow, "airflow", "backfill", "create", "--dag-id", "days__replay",
        "--from-date", "2024-01-01", "--to-date", "2024-01-02",
    )  # fmt: skip
    runs = airflow.runs("days__replay")
    assert len(runs) == 2, runs
    for run_id in runs:
        assert airflow.wait("days__replay", run_id, 600) == "success"
    assert days(project) == {"2024-01-01": 10, "2024-01-02": 20, "2024-01-03": 3}
    with Metastore.open(f"sqlite:///{project.root / 'metastore.db'}") as metastore:
        replays = [run for run in metastore.runs("days") if run.kind == "replay"]
    assert sorted(run.origin["interval"][0][:10] for run in replays) == ["2024-01-01", "2024-01-02"]
    assert {run.origin["run_type"] for run in replays} == {"backfill"}


def write_days(project: DagProject, sql: str) -> None:
    folder = project.pipeline("days", "replay: {interval: 1 day}")
    spec = (
        (folder / "pipeline.yaml")
        .read_text()
        .replace("    options:", "    watermark: {column: at, delay: 0 seconds}\n    options:")
    )
    (folder / "pipeline.yaml").write_text(spec.replace("publish: audited", "time_column: at"))
    (folder / "schemas" / "events.ddl").write_text("at TIMESTAMP, id BIGINT")
    (folder / "transform.sql").write_text(sql)


def land_days(project: DagProject) -> None:
    landing = project.storage / "landing" / "days"
    landing.mkdir(parents=True)
    rows = [{"at": f"2024-01-0{day}T12:00:00Z", "id": day} for day in (1, 2, 3)]
    (landing / "a.json").write_text("\n".join(json.dumps(row) for row in rows))


def days(project: DagProject) -> dict[str, int]:
    table = DeltaTable(str(project.storage / "tables" / "days")).to_pyarrow_table().to_pylist()
    assert len(table) == 3
    return {f"{row['at']:%Y-%m-%d}": row["id"] for row in table}


def command_line(project: DagProject, airflow: LocalAirflow, module: str, *words: str) -> None:
    """A command in a process of its own, with the project's Airflow around it."""
    program = "from drawdown.cli.main import main; main()"
    start = ["-c", program] if module == "drawdown.cli.main" else ["-m", module]
    done = subprocess.run(
        [sys.executable, *start, *words],
        cwd=project.root,
        env=airflow.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
