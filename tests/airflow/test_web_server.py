"""What a user meets in a running Airflow: the page of a run's records, and no backfill of a drain."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import quote

import pytest

from drawdown.errors import MachineError
from drawdown.machine.airflow_home import LocalAirflow
from drawdown.metastore import Metastore
from drawdown.metastore.records import Counts, Run
from tests.support.dag_project import ROOT, DagProject

pytestmark = pytest.mark.timeout(240)

RUN_ID = "manual__2026-01-01T00:00:00+00:00"


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAirflow]:
    project = DagProject(tmp_path_factory.mktemp("web") / "project")
    project.pipeline("events", 'schedule: "5 * * * *"')
    (project.root / "plugins").symlink_to(ROOT / "plugins")
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
