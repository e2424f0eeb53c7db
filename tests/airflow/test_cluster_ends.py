"""However a drain ends, its cluster is taken down and the DAG run has failed: by a real scheduler."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.airflow.home import LocalAirflow
from drawdown.metastore import Metastore
from tests.support import clusters
from tests.support.airflow_runs import assert_success
from tests.support.asked import Request
from tests.support.dag_project import ROOT, DagProject
from tests.support.dag_runs import processes_of
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(1200)

PROFILE = "clusters: {local: {}, one: {kind: standalone, workers: 1, worker_memory: 512m}}"
WAITS = """
import os, time
from pyspark.sql.functions import udf

@udf("string")
def waits(name):
    if name == {at!r}:
        open({begun!r}, "w").close()
        while not os.path.exists({go!r}):
            time.sleep(0.1)
    return name

def transform(sources):
    return sources["events"].withColumn("name", waits("name"))
"""
TIMES_OUT = "execution_timeout: 25 seconds"
STOP_PIPES = ".drawdown/runs/*/stop_pipe"


class Place:
    """A pipeline on a cluster of its own, one of whose batches waits to be let go, and its Airflow."""

    def __init__(self, project: DagProject, airflow: LocalAirflow, name: str, at: int) -> None:
        """`at`: the id of the event that waits."""
        self.project = project
        self.airflow = airflow
        self.name = name
        self.begun, self.go = project.root / f"{name}-begun", project.root / f"{name}-go"
        folder = project.pipeline(name, "cluster: one")
        where = {"begun": str(self.begun), "go": str(self.go)}
        (folder / "transform.py").write_text(WAITS.format(at=f"event {at}", **where))
        spec = folder / "pipeline.yaml"
        spec.write_text(spec.read_text().replace("transform.sql", "transform.py"))
        project.land(name, 1)
        airflow.unpause(name)

    @property
    def driver(self) -> int:
        """The driver's JVM: what the guard started, of all processes of the project."""
        [jvm] = [pid for pid in processes_of(self.project.root) if b"SparkSubmit\0" in command(pid)]
        return jvm

    def start(self) -> str:
        """A run whose drain is in the middle of a batch on its cluster."""
        self.begun.unlink(missing_ok=True)
        run_id = self.trigger()
        until(self.begun.exists, 600)
        assert clusters.executors(self.project.root)
        return run_id

    def trigger(self) -> str:
        """A run that need not wait for the lease of one that was killed."""
        with Metastore.open(f"sqlite:///{self.project.root / 'metastore.db'}") as metastore:
            until(lambda: metastore.holder_of(self.name) is None, 200)
        return self.airflow.trigger(self.name)

    def is_over(self, run_id: str, down: str = "success") -> None:
        """`cluster_down` has run, nothing is left, and the run has failed."""
        assert self.airflow.wait(self.name, run_id, 400) == "failed"
        states = self.airflow.task_states(self.name, run_id)
        ended = {task: states[task] for task in ("cluster_up", "drain", "cluster_down")}
        assert ended == {"cluster_up": "success", "drain": "failed", "cluster_down": down}
        clusters.until_nothing_is_left(self.project.root)
        until(lambda: not drivers(self.project.root), 120)


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def drivers(root: Path) -> list[int]:
    return [pid for pid in processes_of(root) if b"SparkSubmit" in command(pid)]


@pytest.fixture(scope="module")
def airflow_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DagProject, LocalAirflow]]:
    project = DagProject(tmp_path_factory.mktemp("ends") / "project", more=PROFILE, retries=0)
    # The timetable of replays comes with it.
    (project.root / "plugins").symlink_to(ROOT / "plugins")
    quickly = {"DRAWDOWN_STOP_GRACE": "5"}
    with LocalAirflow(project.root, project.root / "airflow", extra_env=quickly) as airflow:
        yield project, airflow
    for pid in [*processes_of(project.root), *clusters.processes(project.root)]:
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def place(airflow_of: tuple[DagProject, LocalAirflow]) -> Place:
    return Place(*airflow_of, "waits", 1)


def mark(place: Place, run_id: str, *of_the_run: str, **body: str) -> None:
    place.airflow.api.call("PATCH", "dags", "waits", "dagRuns", run_id, *of_the_run, body=body)


@pytest.mark.full
def test_a_drain_whose_task_is_marked_failed(place: Place) -> None:
    run_id = place.start()
    mark(place, run_id, "taskInstances", "drain", new_state="failed")
    place.is_over(run_id)


@pytest.mark.full
def test_after_a_driver_that_was_killed_the_next_run_has_each_row_once(
    airflow_of: tuple[DagProject, LocalAirflow],
) -> None:
    place = Place(*airflow_of, "halts", 2)
    project, airflow = airflow_of
    project.land("halts", 2, 3)
    run_id = place.start()
    os.kill(place.driver, signal.SIGKILL)
    place.is_over(run_id)
    with Metastore.open(f"sqlite:///{project.root / 'metastore.db'}") as metastore:
        assert [batch.status for batch in metastore.batches("halts", 1)][:1] == ["staged"], "a batch was done"
    assert project.ids("halts") == []

    place.go.touch()
    run_id = place.trigger()
    assert_success(airflow, "halts", run_id, 400)
    assert airflow.task_states("halts", run_id)["cluster_down"] == "success"
    assert project.ids("halts") == [1, 2, 3]
    clusters.until_nothing_is_left(project.root)
    until(lambda: not drivers(project.root), 120)


@pytest.mark.full
def test_a_run_that_is_marked_failed_ends_so_although_all_behind_the_drain_is_skipped(place: Place) -> None:
    run_id = place.start()
    mark(place, run_id, state="failed")
    place.is_over(run_id, down="failed")
    assert "The cluster has ended" in place.airflow.task_log("waits", run_id, "cluster_down")


@pytest.mark.full
def test_a_drain_that_takes_too_long_has_failed_although_it_stops_between_two_batches(place: Place) -> None:
    place.project.land("waits", 2, 3)
    settings = place.project.root / "include" / "project.yaml"
    before = settings.read_text()
    # The task reads it when it starts.
    settings.write_text(before.replace("execution_timeout: 1 hour", TIMES_OUT))
    try:
        run_id = place.trigger()
        until(lambda: list(place.project.root.glob(STOP_PIPES)), 120)
        until(lambda: not list(place.project.root.glob(STOP_PIPES)), 120)
        place.go.touch()
        place.is_over(run_id)
    finally:
        settings.write_text(before)
        place.go.unlink(missing_ok=True)
    assert "Timeout" in place.airflow.task_log("waits", run_id, "drain")


FED_BY = """
sink: {format: delta, path: tables/copies, schema: schemas/events.ddl, time_column: at}
replay: {interval: 1 day}
cluster: one
"""


@pytest.mark.full
def test_a_replay_and_a_rebuild_have_clusters_too(airflow_of: tuple[DagProject, LocalAirflow]) -> None:
    project, airflow = airflow_of
    folder = project.pipeline("copies", FED_BY)
    spec = folder / "pipeline.yaml"
    live, _, rest = spec.read_text().partition("sink: ")
    spec.write_text(live + rest.partition("\n")[2])
    (folder / "schemas" / "events.ddl").write_text("id BIGINT, name STRING, at TIMESTAMP")
    clusters.transform_only_there(folder, "id", "name", "timestamp'2024-01-01 12:00:00' as at")
    project.land("copies", 1, 2)
    airflow.unpause("copies")
    assert_success(airflow, "copies", airflow.trigger("copies"), 600)

    airflow.unpause("copies__replay")
    noon = {"logical_date": "2024-01-01T12:00:00Z"}
    run_id = until(lambda: airflow.api.call("POST", "dags", "copies__replay", "dagRuns", body=noon))[
        "dag_run_id"
    ]
    assert_success(airflow, "copies__replay", run_id, 600)
    assert airflow.task_states("copies__replay", run_id)["cluster_down"] == "success"
    clusters.until_nothing_is_left(project.root)
    assert project.ids("copies") == [1, 2]

    shutil.copytree(folder, folder / "next")
    run_id = airflow.trigger("drawdown__rebuild", conf={"pipeline": "copies"})
    request = Request(airflow, "drawdown__rebuild", run_id, "approve")
    approve, _ = request.opened()["options"]
    clusters.until_nothing_is_left(project.root)
    request.answer(approve, "it is the same")
    assert_success(airflow, "drawdown__rebuild", run_id, 400)
    assert project.ids("copies") == [1, 2]
