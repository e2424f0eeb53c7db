"""What happens to the runs of a DAG: marked failed, cleared, triggered twice, paused. By the REST API, with a
real scheduler; decisions, chains of pipelines and backfills are in tests/airflow."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dev.airflow.home import LocalAirflow
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run
from tests.support.airflow_runs import assert_success
from tests.support.asset_events import asset_events
from tests.support.command_line import drawdown
from tests.support.dag_project import DagProject
from tests.support.dag_runs import processes_of
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(900)

NOTHING_NEW = {"preflight": "success", "drain": "skipped", "audit": "skipped", "publish": "skipped"}
WAITS_AFTER_TWO = """
import os, time
from pyspark.sql.functions import udf

@udf("string")
def waited_for(name):
    while name not in ("event 1", "event 2") and not os.path.exists({gate!r}):
        time.sleep(0.1)
    return name

def transform(sources):
    return sources["events"].withColumn("name", waited_for("name"))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> DagProject:
    project = DagProject(
        tmp_path_factory.mktemp("situations") / "project", retries=0, more="lease_ttl: 10 seconds"
    )
    project.pipeline("events")
    project.pipeline("yearly", 'schedule: "@yearly"')
    folder = project.pipeline("gated")
    (folder / "transform.py").write_text(WAITS_AFTER_TWO.format(gate=str(gate_of(project))))
    spec = folder / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("transform.sql", "transform.py"))
    return project


@pytest.fixture(scope="module")
def airflow(project: DagProject) -> Iterator[LocalAirflow]:
    quickly = {"DRAWDOWN_STOP_GRACE": "5"}
    with LocalAirflow(project.root, project.root / "airflow", extra_env=quickly) as started:
        yield started


@pytest.fixture(scope="module")
def overlapping(project: DagProject, airflow: LocalAirflow) -> list[str]:
    """Ids of two runs of `events` that were triggered at once, both ended well."""
    project.land("events", 1, 2, 3)
    airflow.unpause("events")
    run_ids = [airflow.trigger("events"), airflow.trigger("events")]
    assert [airflow.wait("events", run_id, 400) for run_id in run_ids] == ["success", "success"]
    return run_ids


@pytest.mark.full
def test_of_two_triggers_at_once_one_waits_and_both_end_right(
    project: DagProject, airflow: LocalAirflow, overlapping: list[str]
) -> None:
    first, second = sorted((dag_run(airflow, "events", run_id) for run_id in overlapping), key=started)
    assert first["end_date"] <= second["start_date"]
    assert project.ids("events") == [1, 2, 3]
    assert set(airflow.task_states("events", first["dag_run_id"]).values()) == {"success"}
    assert airflow.task_states("events", second["dag_run_id"]) == NOTHING_NEW
    assert list((project.root / ".drawdown" / "runs").iterdir()) == []


@pytest.mark.full
def test_a_run_updates_the_asset_and_its_tasks_lead_to_its_record(
    project: DagProject, airflow: LocalAirflow, overlapping: list[str]
) -> None:
    event = asset_events(airflow, source_dag_id="events")[0]
    extra = event["extra"]
    assert (extra["rows"], extra["batch_ids"], extra["verdict"]) == (3, [0, 2], "pass")
    record = runs_of(project, "events")[-1]
    run_id = event["source_run_id"]
    assert run_id in overlapping
    assert (record.state, record.origin["dag_run_id"], record.origin["try_number"]) == (
        "succeeded",
        run_id,
        1,
    )
    for task in ("drain", "audit", "publish"):
        links = airflow.api.call("GET", "dags", "events", "dagRuns", run_id, "taskInstances", task, "links")
        assert links["extra_links"]["Run record"].startswith(f"{airflow.url}/drawdown/runs/events/")


@pytest.mark.full
def test_a_succeeded_run_that_is_cleared_changes_nothing(
    project: DagProject, airflow: LocalAirflow, overlapping: list[str]
) -> None:
    run_id = min((dag_run(airflow, "events", run_id) for run_id in overlapping), key=started)["dag_run_id"]
    before = files_of(project, "events")
    [record] = runs_of(project, "events")

    tasks = {"dag_run_id": run_id, "task_ids": ["drain"], "include_downstream": True}
    clear = {"dry_run": False, "only_failed": False, **tasks}
    airflow.api.call("POST", "dags", "events", "clearTaskInstances", body=clear)
    assert_success(airflow, "events", run_id, 400)
    # Its rows are in the first event of its asset: there is nothing to report again.
    done = {"preflight": "success", "drain": "success", "audit": "success", "publish": "skipped"}
    assert airflow.task_states("events", run_id) == done
    again, *earlier = runs_of(project, "events")
    assert earlier == [record]
    assert (again.state, again.stop_reason, again.counts.read) == ("succeeded", "nothing new", 0)
    assert (again.origin["dag_run_id"], again.origin["try_number"]) == (run_id, 2)

    airflow.api.call("POST", "dags", "events", "dagRuns", run_id, "clear", body={"dry_run": False})
    assert_success(airflow, "events", run_id, 400)
    assert airflow.task_states("events", run_id) == NOTHING_NEW
    assert runs_of(project, "events") == [again, record]
    assert files_of(project, "events") == before


@pytest.mark.full
def test_a_run_marked_failed_in_the_middle_of_a_drain_leaves_nothing_running_and_the_next_goes_on(
    project: DagProject, airflow: LocalAirflow
) -> None:
    project.land("gated", 1, 2)
    for file in (project.storage / "landing" / "gated").iterdir():
        os.utime(file, (time.time() - 10, time.time() - 10))  # read before what comes now
    project.land("gated", 3, 4, 5, 6)
    airflow.unpause("gated")
    run_id = airflow.trigger("gated")
    until(lambda: batches(project, "gated") == 2)

    beside = drawdown(project.root, "run", "gated")
    assert (beside.returncode, "lease.held" in beside.stderr) == (4, True), beside.stderr

    airflow.api.call("PATCH", "dags", "gated", "dagRuns", run_id, body={"state": "failed"})
    until(lambda: not drivers_of(project))
    until(lambda: holder_of(project, "gated") is None)
    assert airflow.state("gated", run_id) == "failed"
    assert project.ids("gated") == []

    gate_of(project).touch()
    following = airflow.trigger("gated")
    assert_success(airflow, "gated", following, 400)
    assert project.ids("gated") == [1, 2, 3, 4, 5, 6]
    last, ended = runs_of(project, "gated")
    assert (last.state, last.origin["dag_run_id"]) == ("succeeded", following)
    assert ended.state in ("stopped", "crashed")
    assert ended.counts.read + last.counts.read == 6


@pytest.mark.full
def test_a_paused_dag_catches_up_by_one_run_when_it_is_unpaused(
    project: DagProject, airflow: LocalAirflow
) -> None:
    """Its schedule is due for three years and more by now."""
    project.land("yearly", 1, 2, 3, 4)
    until(lambda: airflow.api.call("GET", "dags", "yearly"))
    assert airflow.runs("yearly") == {}, "it is paused"
    airflow.unpause("yearly")
    [run_id] = until(lambda: airflow.runs("yearly"))
    assert_success(airflow, "yearly", run_id, 400)
    assert dag_run(airflow, "yearly", run_id)["run_type"] == "scheduled"
    assert project.ids("yearly") == [1, 2, 3, 4]
    following = airflow.api.call("GET", "dags", "yearly")["next_dagrun_run_after"]
    assert datetime.fromisoformat(following) > datetime.now(UTC)
    assert list(airflow.runs("yearly")) == [run_id]


def gate_of(project: DagProject) -> Path:
    return project.root / "gate"


def dag_run(airflow: LocalAirflow, dag_id: str, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = airflow.api.call("GET", "dags", dag_id, "dagRuns", run_id)
    return found


def started(run: dict[str, Any]) -> str:
    return str(run["start_date"])


def open_metastore(project: DagProject) -> Metastore:
    return Metastore.open(f"sqlite:///{project.root / 'metastore.db'}")


def runs_of(project: DagProject, name: str) -> list[Run]:
    """Run records, newest first."""
    with open_metastore(project) as metastore:
        return metastore.runs(name)


def batches(project: DagProject, name: str) -> int:
    with open_metastore(project) as metastore:
        return len(metastore.batches(name, 1))


def holder_of(project: DagProject, name: str) -> object:
    with open_metastore(project) as metastore:
        return metastore.holder_of(name)


def drivers_of(project: DagProject) -> list[int]:
    """Processes of Spark applications: what was handed a folder for one run."""
    running = []
    for pid in processes_of(project.root):
        try:
            if b"DRAWDOWN_RUN_FOLDER=" in Path(f"/proc/{pid}/environ").read_bytes():
                running.append(pid)
        except OSError:
            continue
    return running


def files_of(project: DagProject, name: str) -> set[str]:
    """Every file of a pipeline's table."""
    table = project.storage / "tables" / name
    return {str(path.relative_to(table)) for path in table.rglob("*") if path.is_file()}
