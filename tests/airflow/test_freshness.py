"""`freshness:` of pipelines that run after others, and of a pipeline whose run hangs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dev.airflow.home import LocalAirflow
from drawdown.airflow.dags.freshness import FreshnessOperator
from drawdown.airflow.tasks.task_failures import TaskFailed
from drawdown.fleet.standing import standing
from drawdown.metastore.records import Counts
from drawdown.spec import load_project
from drawdown.workspace import Workspace
from tests.support.airflow_runs import assert_success
from tests.support.dag_project import DagProject
from tests.support.fleet_records import FleetRecords
from tests.support.waiting import until

HANGS = """
import time
from pathlib import Path


def transform(sources):
    while (Path(__file__).parent / "hang").exists():
        time.sleep(0.2)
    return sources["events"].select("id", "name")
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[FleetRecords]:
    fleet = FleetRecords(tmp_path / "project")
    for name in ("sales", "stock"):
        fleet.pipeline(name)
    fleet.pipeline("after", 'schedule: ["asset:sales", "asset:stock"]\nfreshness: 1 second\n')
    yield fleet
    fleet.metastore.close()


def publishes(fleet: FleetRecords, name: str, state: Any = "succeeded", rows: int = 1) -> None:
    fleet.ran(name, state, counts=Counts(published=rows))


def judged(fleet: FleetRecords) -> str:
    """What the task of `drawdown__freshness` says more than a second later; `drawdown status` agrees."""
    time.sleep(1.1)
    task = FreshnessOperator(task_id="after", project_root=str(fleet.root), pipeline="after")
    with Workspace.open(load_project(fleet.root)) as workspace:
        is_late = standing(workspace, "after").is_late
    try:
        task.execute({})
    except TaskFailed as error:
        assert is_late
        return str(error)
    assert not is_late
    return "fresh"


@pytest.mark.capability("SEE-18")
def test_a_pipeline_whose_upstream_published_nothing_is_not_late(fleet: FleetRecords) -> None:
    publishes(fleet, "sales")
    publishes(fleet, "stock")
    assert judged(fleet) == "fresh", "it has never run"
    publishes(fleet, "after")
    assert judged(fleet) == "fresh"
    publishes(fleet, "sales")
    publishes(fleet, "stock", rows=0)
    assert judged(fleet) == "fresh", "it waits for both"


@pytest.mark.capability("SEE-18")
def test_a_pipeline_that_has_not_published_its_input_is_late_since_that_came(fleet: FleetRecords) -> None:
    publishes(fleet, "after")
    publishes(fleet, "sales")
    publishes(fleet, "stock")
    said = judged(fleet)
    assert said.startswith("late: after has not published what came from sales, stock at ")
    assert said.endswith("freshness: 1 second")
    publishes(fleet, "after", "failed", rows=0)
    assert judged(fleet).startswith("late:")
    fleet.ran("after", "running")
    assert judged(fleet).startswith("late:"), "its run goes on, or hangs"
    publishes(fleet, "after", rows=0)
    assert judged(fleet) == "fresh", "it has taken the rows, and its transform let none through"


@pytest.mark.capability("SEE-18")
def test_what_a_run_took_while_its_upstream_published_is_not_asked_for_again(fleet: FleetRecords) -> None:
    run = fleet.ran("after", "running")
    publishes(fleet, "sales")
    publishes(fleet, "stock")
    fleet.metastore.finish_run(run.run_id, "succeeded", counts=Counts(published=3))
    assert judged(fleet).startswith("late:"), "nobody has looked yet"
    fleet.waits("after", files=0)
    assert judged(fleet) == "fresh"
    publishes(fleet, "sales")
    publishes(fleet, "stock")
    fleet.waits("after", files=2)
    assert judged(fleet).startswith("late:")


@pytest.mark.capability("SEE-18")
def test_a_held_slice_is_late_although_a_later_run_succeeded(fleet: FleetRecords) -> None:
    publishes(fleet, "after")
    publishes(fleet, "sales")
    publishes(fleet, "stock")
    fleet.held("after")
    publishes(fleet, "after", rows=0)
    assert judged(fleet).startswith("late:")


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAirflow]:
    project = DagProject(tmp_path_factory.mktemp("freshness") / "project", retries=0)
    settings = project.root / "include/project.yaml"
    settings.write_text(
        settings.read_text().replace("retries: 0", 'retries: 0, freshness_schedule: "* * * * *"')
    )
    folder = project.pipeline("hangs", "freshness: 20 seconds")
    spec = folder / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("transform.sql", "transform.py"))
    (folder / "transform.sql").unlink()
    (folder / "transform.py").write_text(HANGS)
    with LocalAirflow(project.root, project.root / "airflow") as started:
        started.unpause("hangs")
        yield started


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.capability("SEE-15")
def test_a_pipeline_is_stale_while_its_run_hangs(airflow: LocalAirflow) -> None:
    root = airflow.project_root
    landing = root / "storage/landing/hangs"
    landing.mkdir(parents=True)
    (landing / "1.json").write_text('{"id": 1, "name": "one"}\n')
    assert_success(airflow, "hangs", airflow.trigger("hangs"), 400)

    (root / "include/pipelines/hangs/hang").touch()
    (landing / "2.json").write_text('{"id": 2, "name": "two"}\n')
    hanging = airflow.trigger("hangs")
    until(lambda: airflow.task_states("hangs", hanging).get("drain") == "running")
    with Workspace.open(load_project(root)) as workspace:
        until(lambda: workspace.metastore.holder_of("hangs"), 120)
        until(lambda: workspace.metastore.now() - last(workspace) > timedelta(seconds=20))
    began = set(airflow.runs("drawdown__freshness"))

    def failed() -> str | None:
        runs = airflow.runs("drawdown__freshness")
        return next((run for run, state in runs.items() if run not in began and state == "failed"), None)

    run_id = until(failed, 300)
    assert "late: hangs published last at" in airflow.task_log("drawdown__freshness", run_id, "hangs")
    assert airflow.task_states("hangs", hanging)["drain"] == "running", "nothing has ended it"

    (root / "include/pipelines/hangs/hang").unlink()
    assert_success(airflow, "hangs", hanging, 400)


def last(workspace: Workspace) -> Any:
    published = workspace.metastore.last_published("hangs")
    assert published is not None
    return published
