"""Real runs by `airflow dags test`: real tasks, a real spark-submit behind them, real rows."""

from __future__ import annotations

import gzip
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drawdown.metastore import Metastore
from tests.support.dag_project import DagProject
from tests.support.dag_runs import Runs

pytestmark = pytest.mark.timeout(900)

FAILS_ON_TWO = """
expectations:
  - {type: expect_column_values_to_not_be_in_set, kwargs: {column: id, value_set: [2]}}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("airflow")


@pytest.fixture
def runs(tmp_path: Path, home: Path) -> Iterator[Runs]:
    runs = Runs(DagProject(tmp_path / "project"), home)
    yield runs
    for pid in runs.processes():
        os.kill(pid, signal.SIGKILL)


@pytest.mark.full
def test_in_a_group_one_failing_audit_holds_only_its_own_rows(runs: Runs) -> None:
    runs.project.pipeline("bad", "group: both", quality=FAILS_ON_TWO)
    runs.project.pipeline("good", "group: both", quality=FAILS_ON_TWO)
    runs.project.pipeline("idle", "group: both")
    runs.project.land("bad", 1, 2)
    runs.project.land("good", 1, 3)
    (runs.project.storage / "landing" / "idle").mkdir()

    assert runs.run("both") == {
        "preflight": "success",
        "drain": "failed",
        "bad.audit": "failed",
        "bad.publish": "upstream_failed",
        "bad.ask": "failed",  # no scheduler is there that knows the DAG which it starts
        "good.audit": "success",
        "good.publish": "success",
        "good.ask": "skipped",
        "idle.audit": "skipped",
        "idle.publish": "skipped",
    }
    assert runs.project.ids("bad") == []
    assert runs.project.ids("good") == [1, 3]
    assert "Permanent error, not retried: bad: audit.fail" in runs.log.read_text()
    assert "audit of bad: fail" in runs.log.read_text()


@pytest.mark.full
@pytest.mark.capability("SAFE-07")
def test_in_a_group_only_the_one_that_ends_the_jvm_fails(tmp_path: Path, home: Path) -> None:
    small = 'clusters: {local: {kind: local, master: "local[2]", driver_memory: 512m}}'
    runs = Runs(DagProject(tmp_path / "project", small, retries=0), home)
    runs.project.pipeline("calm", "group: both")
    runs.project.land("calm", *range(1, 21))
    folder = runs.project.pipeline("bombed", "group: both")
    spec = folder / "pipeline.yaml"
    high = "path: landing/bombed\n    limits: {record: 4g, expansion: 100000}"
    spec.write_text(spec.read_text().replace("path: landing/bombed", high))
    runs.project.land("bombed", 1)
    bomb = runs.project.storage / "landing/bombed/2.json.gz"
    bomb.write_bytes(gzip.compress(b'{"id": 2, "name": "' + b"x" * (300 << 20) + b'"}\n', 6))

    runs.start("both").wait(900)
    log = runs.log.read_text()
    assert runs.states("both") == {
        "preflight": "success",
        "drain": "failed",
        "bombed.audit": "failed",
        "bombed.publish": "upstream_failed",
        "calm.audit": "success",
        "calm.publish": "success",
    }, log[-4000:]
    assert runs.project.ids("calm") == list(range(1, 21))
    assert "Traceback" not in log
    if "source.ends-spark: " not in log:  # calm was quicker, so bombed has not run alone yet
        assert "spark.gone" in log
        runs.start("both").wait(900)
    assert "landing/bombed/2.json.gz (" in runs.log.read_text()
    assert "source.ends-spark: " in runs.log.read_text()


def test_a_missing_folder_fails_the_preflight_and_starts_no_spark(runs: Runs) -> None:
    settings = runs.project.root / "include" / "project.yaml"
    settings.write_text(settings.read_text().replace("retries: 2", "retries: 0"))
    runs.project.pipeline("nowhere")
    assert runs.run("nowhere") == {
        "preflight": "failed",
        "drain": "upstream_failed",
        "audit": "failed",
        "publish": "upstream_failed",
    }
    log = runs.log.read_text()
    assert "source.missing: source events of nowhere: landing/nowhere does not exist in the storage" in log
    assert "Traceback" not in log
    with Metastore.open(f"sqlite:///{runs.project.root / 'metastore.db'}") as metastore:
        [run] = metastore.runs("nowhere")
    assert (run.state, run.error and run.error["id"], run.origin["task_id"]) == (
        "failed",
        "source.missing",
        "preflight",
    )


@pytest.mark.fault("F39", "delta")
@pytest.mark.fault("F09", "delta")
def test_a_task_that_is_ended_leaves_no_process_and_loses_nothing(runs: Runs) -> None:
    runs.project.pipeline("events")
    runs.project.land("events", *range(1, 25))
    for how in (signal.SIGTERM, signal.SIGKILL):
        end_in_the_middle(runs, how)
    assert set(runs.run("events").values()) == {"success"}
    assert runs.project.ids("events") == list(range(1, 25))


def end_in_the_middle(runs: Runs, how: signal.Signals) -> None:
    task = runs.start("events")
    runs.wait_for("events: batch ", task)
    # SIGTERM comes to the whole group, as from Airflow's supervisor; SIGKILL only to the task.
    if how is signal.SIGTERM:
        os.killpg(task.pid, how)
        time.sleep(5)
    task.kill()
    task.wait()
    runs.wait_until_gone(90)
    with Metastore.open(f"sqlite:///{runs.project.root / 'metastore.db'}") as metastore:
        assert metastore.holder_of("events") is None
        assert metastore.runs("events")[0].state == "stopped"
        done = len(metastore.batches("events", 1))
    assert 0 < done < 24
