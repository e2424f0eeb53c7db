"""However a drain ends, its cluster is taken down and the DAG run has failed: by a real scheduler."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from drawdown.machine.airflow_home import LocalAirflow
from drawdown.metastore import Metastore
from tests.support import clusters
from tests.support.asked import Request
from tests.support.dag_project import DagProject
from tests.support.dag_runs import processes_of
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(1200)

FULL = pytest.mark.full
PROFILE = "clusters: {local: {}, one: {kind: standalone, workers: 1, worker_memory: 512m}}"
WAITS = """
import os, time
from pyspark.sql.functions import udf

@udf("string")
def waits(name):
    open({begun!r}, "w").close()
    while not os.path.exists({go!r}):
        time.sleep(0.1)
    return name

def transform(sources):
    return sources["events"].withColumn("name", waits("name"))
"""
TIMES_OUT = "execution_timeout: 25 seconds"
LEASHES = ".drawdown/runs/*/leash"


class Place:
    """A project with one pipeline whose batches wait to be let go, and the Airflow that drains it."""

    def __init__(self, project: DagProject, airflow: LocalAirflow) -> None:
        self.project = project
        self.airflow = airflow
        self.begun, self.go = project.root / "begun", project.root / "go"

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
            until(lambda: metastore.holder_of("waits") is None, 200)
        return self.airflow.trigger("waits")

    def is_over(self, run_id: str, down: str = "success") -> None:
        """`cluster_down` has run, nothing is left, and the run has failed."""
        assert self.airflow.wait("waits", run_id, 400) == "failed"
        states = self.airflow.task_states("waits", run_id)
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
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    project = DagProject(tmp_path_factory.mktemp("ends") / "project", more=PROFILE, retries=0)
    quickly = {"DRAWDOWN_STOP_GRACE": "5"}
    with LocalAirflow(project.root, project.root / "airflow", extra_env=quickly) as airflow:
        place = Place(project, airflow)
        folder = project.pipeline("waits", "cluster: one")
        (folder / "transform.py").write_text(WAITS.format(begun=str(place.begun), go=str(place.go)))
        spec = folder / "pipeline.yaml"
        spec.write_text(spec.read_text().replace("transform.sql", "transform.py"))
        project.land("waits", 1)
        airflow.unpause("waits")
        yield place
    for pid in [*processes_of(project.root), *clusters.processes(project.root)]:
        os.kill(pid, signal.SIGKILL)


def mark(place: Place, run_id: str, *of_the_run: str, **body: str) -> None:
    place.airflow.api.call("PATCH", "dags", "waits", "dagRuns", run_id, *of_the_run, body=body)


@pytest.mark.full
@pytest.mark.parametrize(
    "dies", ["its task is marked failed", pytest.param("its driver is killed", marks=FULL)]
)
def test_a_drain_that_is_ended_from_outside(place: Place, dies: str) -> None:
    run_id = place.start()
    if dies == "its driver is killed":
        os.kill(place.driver, signal.SIGKILL)
    else:
        mark(place, run_id, "taskInstances", "drain", new_state="failed")
    place.is_over(run_id)


@FULL
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
        until(lambda: list(place.project.root.glob(LEASHES)), 120)
        until(lambda: not list(place.project.root.glob(LEASHES)), 120)
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


@FULL
def test_a_replay_and_a_rebuild_have_clusters_too(place: Place) -> None:
    project, airflow = place.project, place.airflow
    folder = project.pipeline("copies", FED_BY)
    spec = folder / "pipeline.yaml"
    live, _, rest = spec.read_text().partition("sink: ")
    spec.write_text(live + rest.partition("\n")[2])
    (folder / "schemas" / "events.ddl").write_text("id BIGINT, name STRING, at TIMESTAMP")
    (folder / "transform.sql").write_text("select id, name, timestamp'2024-01-01 12:00:00' as at from events")
    project.land("copies", 1, 2)
    airflow.unpause("copies")
    assert airflow.wait("copies", airflow.trigger("copies"), 600) == "success"

    noon = {"logical_date": "2024-01-01T12:00:00Z"}
    run_id = until(lambda: airflow.api.call("POST", "dags", "copies__replay", "dagRuns", body=noon))[
        "dag_run_id"
    ]
    assert airflow.wait("copies__replay", run_id, 600) == "success"
    assert "--master spark://127.0.0.1:" in airflow.task_log("copies__replay", run_id, "replay")
    assert airflow.task_states("copies__replay", run_id)["cluster_down"] == "success"

    shutil.copytree(folder, folder / "next")
    run_id = airflow.trigger("drawdown__rebuild", conf={"pipeline": "copies"})
    request = Request(airflow, "drawdown__rebuild", run_id, "approve")
    request.opened()
    assert "--master spark://127.0.0.1:" in airflow.task_log("drawdown__rebuild", run_id, "rebuild")
    clusters.until_nothing_is_left(project.root)
    request.answer("approve", "it is the same")
    assert airflow.wait("drawdown__rebuild", run_id, 400) == "success"
    assert project.ids("copies") == [1, 2]
