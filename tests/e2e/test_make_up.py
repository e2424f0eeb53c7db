"""The first `make up` opens on the examples' own data: a day of flights, drained by its Airflow."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev import services
from dev.airflow.home import LocalAirflow, running_airflow
from dev.demo.line import GROUP, PIPELINES
from drawdown.errors import MachineError
from drawdown.metastore import Metastore
from drawdown.spec import load_project
from tests.support.browser import logged_in
from tests.support.lineage_server import check_event

ROOT = Path(__file__).parents[2]
SECONDS = 300
LINEAGE = "events.jsonl"

pytestmark = [pytest.mark.full, pytest.mark.timeout(900), pytest.mark.capability("SEE-01", "SEE-13")]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the project, as a clone is; nothing of it runs behind the test."""
    for name in ("DRAWDOWN_STORAGE", "DRAWDOWN_METASTORE", "DRAWDOWN_KAFKA", "DRAWDOWN_STATE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("dags", "jobs", "plugins", "include/pipelines"):
        shutil.copytree(ROOT / name, tmp_path / name)
    project = (ROOT / "include/project.yaml").read_text()
    (tmp_path / "include/project.yaml").write_text(f"{project}lineage: {{file: {LINEAGE}}}\n")
    yield tmp_path
    services.down(tmp_path)
    assert subprocess.run(["pgrep", "-f", str(tmp_path)], check=False).returncode == 1, "something is left"


def _drained(root: Path, number: int) -> LocalAirflow:
    """When the run of so many days has ended well."""
    airflow = running_airflow(root, root / ".drawdown/airflow")
    assert airflow is not None
    runs = list(airflow.runs(GROUP))
    assert len(runs) == number
    state = airflow.wait(GROUP, runs[-1], SECONDS)
    assert state == "success", airflow.task_states(GROUP, runs[-1])
    return airflow


def test_the_fleet_page_shows_days_that_arrive_one_by_one(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    services.up(root)
    assert "day 1 of 3, 01 January 2013, is delivered" in capsys.readouterr().out
    airflow = _drained(root, 1)
    services.up(root)
    assert "is delivered" not in capsys.readouterr().out, "a second `make up` delivers nothing"
    services.day(root)
    assert "day 2 of 3" in capsys.readouterr().out
    _drained(root, 2)
    with Metastore.open(load_project(root).metastore_url) as metastore:
        runs = metastore.runs(limit=100)
    assert sorted(run.pipeline for run in runs) == sorted(PIPELINES * 2)
    assert {run.state for run in runs} == {"succeeded"}
    with logged_in(airflow, takes_pictures=False) as browser:
        browser.open("plugin", "drawdown-fleet")
        fleet = browser.page.frame_locator("iframe")
        for name in PIPELINES:
            fleet.get_by_role("link", name=name, exact=True).first.wait_for()
        assert "never ran" not in fleet.locator("main").inner_text()
    services.day(root)
    assert "make day" not in capsys.readouterr().out, "there is no fourth"
    _drained(root, 3)
    services.day(root)
    assert "All 3 days have been delivered" in capsys.readouterr().out

    events = [json.loads(line) for line in (root / LINEAGE).read_text().splitlines()]
    assert "columnLineage" in set().union(*map(check_event, events))
    told = Counter((event["job"]["name"], event["eventType"]) for event in events)
    assert told == {(name, type): 3 for name in PIPELINES for type in ("START", "COMPLETE")}
    assert all(event["run"]["facets"]["parent"]["root"]["job"]["name"] == GROUP for event in events)
    written, read = (
        {(each["namespace"], each["name"]) for event in events for each in event[direction]}
        for direction in ("outputs", "inputs")
    )
    assert written & read, "what one pipeline writes another one reads, under one name"


def test_a_day_needs_what_make_up_has_started(root: Path) -> None:
    with pytest.raises(MachineError) as caught:
        services.day(root)
    assert (caught.value.id, caught.value.do) == ("demo.no-services", "start them: make up")
    assert not (root / ".drawdown/storage").exists()
