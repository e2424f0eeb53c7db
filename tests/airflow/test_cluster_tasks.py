"""The tasks that spin a cluster up for a DAG run and take it down, whatever becomes of the drain."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG

from drawdown.metastore import Metastore
from tests.support import clusters
from tests.support.dag_project import DagProject
from tests.support.dag_runs import Runs

pytestmark = pytest.mark.timeout(900)

PROFILES = """
clusters:
  local: {}
  one: {kind: standalone, workers: 1, worker_memory: 600m}
  timed: {kind: standalone, workers: {max: 2, within: 1 hour, each: {files: 100}}, worker_memory: 600m}
"""
FAILS = "cast(raise_error('no') as string) as name"


@pytest.fixture
def project(tmp_path: Path) -> DagProject:
    return DagProject(tmp_path / "project", more=PROFILES, retries=0)


@pytest.fixture
def runs(project: DagProject, tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(project, tmp_path / "airflow")
    yield runs
    for pid in [*runs.processes(), *clusters.processes(project.root)]:
        os.kill(pid, signal.SIGKILL)


def dag_of(project: DagProject, dag_id: str) -> DAG:
    found = DagBag(dag_folder=project.root / "dags", bundle_path=project.root / "dags")
    assert found.import_errors == {}
    return found.dags[dag_id]


def test_a_cluster_goes_up_before_the_drain_and_down_behind_it(project: DagProject) -> None:
    project.pipeline("events", "cluster: one")
    dag = dag_of(project, "events")
    assert {task.task_id: set(task.downstream_task_ids) for task in dag.tasks} == {
        "preflight": {"cluster_up"},
        "cluster_up": {"drain", "cluster_down"},
        "drain": {"audit", "cluster_down"},
        "cluster_down": set(),
        "audit": {"publish"},
        "publish": set(),
    }
    up, down = dag.get_task("cluster_up"), dag.get_task("cluster_down")
    assert up.is_setup
    assert down.is_teardown
    assert down.on_failure_fail_dagrun
    assert up.pool == "drawdown"


def test_a_replay_has_a_cluster_too(project: DagProject) -> None:
    spec = project.pipeline("events", "cluster: one\nreplay: {interval: 1 day}") / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("publish: audited", "time_column: at"))
    (spec.parent / "schemas" / "events.ddl").write_text("id BIGINT, at TIMESTAMP")
    dag = dag_of(project, "events__replay")
    assert dag.get_task("cluster_up").downstream_task_ids == {"replay", "cluster_down"}
    assert dag.get_task("replay").downstream_task_ids == {"audit", "cluster_down"}


@pytest.mark.full
def test_every_run_has_a_cluster_that_is_gone_afterwards_also_when_its_drain_fails(runs: Runs) -> None:
    folder = runs.project.pipeline("events", "cluster: timed")
    clusters.transform_only_there(folder, "id", "name")
    runs.project.land("events", 1, 2)
    assert runs.run("events") == {
        "preflight": "success",
        "cluster_up": "success",
        "drain": "success",
        "cluster_down": "success",
        "audit": "success",
        "publish": "success",
    }, runs.log.read_text()[-6000:]
    assert runs.project.ids("events") == [1, 2]
    # What cluster_up has chosen reaches the record by way of the cluster and the driver's settings.
    with Metastore.open(f"sqlite:///{runs.project.root / 'metastore.db'}") as metastore:
        [run] = metastore.runs("events")
    why = run.origin["workers_why"]
    assert why.startswith("2 files wait, and `each` is 100 for one worker (`within` cannot decide: 0 of 5")
    assert f"Spinning up 1 worker: {why}" in runs.log.read_text()
    clusters.until_nothing_is_left(runs.project.root)

    clusters.transform_only_there(folder, "id", FAILS)
    runs.project.land("events", 3)
    states = runs.run("events")
    assert (states["cluster_up"], states["drain"], states["cluster_down"]) == ("success", "failed", "success")
    clusters.until_nothing_is_left(runs.project.root)


@pytest.mark.capability("HOST-09")
def test_nothing_new_spins_nothing_up_and_a_set_up_that_fails_leaves_nothing(runs: Runs) -> None:
    runs.project.pipeline("events", "cluster: one")
    (runs.project.storage / "landing" / "events").mkdir(parents=True)
    states = runs.run("events")
    assert states.pop("preflight") == "success"
    assert set(states.values()) == {"skipped"}
    assert clusters.folders(runs.project.root) == []

    runs.airflow.environment["SPARK_WORKER_OPTS"] = "-agentlib:nosuch"
    runs.project.land("events", 1)
    states = runs.run("events")
    assert (states["cluster_up"], states["drain"]) == ("failed", "upstream_failed")
    assert states["cluster_down"] in ("skipped", "upstream_failed")
    assert "cluster.not-up" in runs.log.read_text()
    assert "Spinning up 1 worker: the profile says so" in runs.log.read_text()
    assert runs.query("select state from dag_run order by id desc limit 1") == [("failed",)]
    clusters.until_nothing_is_left(runs.project.root)
