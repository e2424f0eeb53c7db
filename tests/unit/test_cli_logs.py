"""`drawdown logs`: a run's own lines of the file they are in, or where the file is."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from drawdown.cli.main import app
from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore, this_process
from drawdown.metastore.records import Run
from tests.support.command_line import answer

TASK = {"dag_id": "sales", "dag_run_id": "manual__1", "task_id": "drain", "try_number": 2}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "include/pipelines/sales").mkdir(parents=True)
    (tmp_path / "include/project.yaml").write_text("storage_root: storage\nmetastore: sqlite:///m.db\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    return tmp_path


def ran(project: Path, run_id: str, **origin: Any) -> Run:
    with Metastore.open(f"sqlite:///{project}/m.db") as metastore:
        metastore.start_run(Run(run_id, "sales", holder="worker-7 pid 1", origin=origin))
        return metastore.finish_run(run_id, "succeeded")


def refusal(*words: str) -> DrawdownError:
    error = CliRunner().invoke(app, ["logs", *words]).exception
    assert isinstance(error, DrawdownError), error
    return error


def test_of_a_command_it_is_the_part_of_sparks_log_that_the_run_wrote(project: Path) -> None:
    run = ran(project, "r1", command="drawdown run")
    assert run.started_at is not None
    before, after = (f"{run.started_at + timedelta(minutes=m):%Y-%m-%d %H:%M:%S}" for m in (-5, 5))
    inside = f"{run.started_at:%Y-%m-%d %H:%M:%S} WARN Query: a warning"
    log = project / ".drawdown/logs/spark.log"
    log.parent.mkdir(parents=True)
    log.write_text(f"{before} WARN Other: x\n\tat other\n{inside}\n\tat here\n{after} ERROR Other: y\n")
    assert answer(CliRunner().invoke(app, ["logs", "sales", "--json"]).stdout)["lines"] == [
        inside,
        "\tat here",
    ]
    assert f"{inside}\n\tat here\n" in CliRunner().invoke(app, ["logs", "sales", "r"]).output


def test_of_a_run_that_failed_it_ends_with_the_error_and_the_remedy(project: Path) -> None:
    ran(project, "r0")
    with Metastore.open(f"sqlite:///{project}/m.db") as metastore:
        metastore.start_run(Run("r1", "sales", holder="worker-7 pid 1", origin={"command": "drawdown run"}))
        error = {"id": "sink.schema-drift", "what": "`n` is gone", "where": "", "do": "put it back"}
        metastore.finish_run("r1", "failed", error=error)
    log = project / ".drawdown/logs/spark.log"
    log.parent.mkdir(parents=True)
    log.write_text("")
    said = CliRunner().invoke(app, ["logs", "sales"]).stderr
    assert said.endswith("sink.schema-drift: `n` is gone\n  do:    put it back\n")


def test_of_a_dag_run_it_is_the_log_of_its_task(project: Path) -> None:
    ran(project, "r1", **TASK)
    log = project / "airflow/logs/dag_id=sales/run_id=manual__1/task_id=drain/attempt=2.log"
    log.parent.mkdir(parents=True)
    event = {"timestamp": "2024-01-01T00:00:01.5Z", "level": "error", "event": "query.failed: boom"}
    log.write_text(f"{json.dumps(event)}\nplain\n")
    lines = answer(CliRunner().invoke(app, ["logs", "sales", "--json"]).stdout)["lines"]
    assert lines == ["2024-01-01 00:00:01 ERROR query.failed: boom", "plain"]


def test_a_log_on_another_machine_is_named(project: Path) -> None:
    ran(project, "r1", **TASK)
    error = refusal("sales")
    assert (error.id, error.exit_code) == ("logs.elsewhere", 8)
    assert "worker-7" in error.what
    assert error.where.endswith("task_id=drain/attempt=2.log")
    assert "/dags/sales/runs/manual__1/tasks/drain" in error.do


def test_a_run_that_ended_before_spark_started_has_no_log(project: Path) -> None:
    with Metastore.open(f"sqlite:///{project}/m.db") as metastore:
        metastore.start_run(Run("r1", "sales", holder=this_process(), origin={"command": "drawdown run"}))
        metastore.finish_run("r1", "failed", error={"id": "storage.moved", "what": "", "where": "", "do": ""})
    error = refusal("sales")
    assert (error.id, error.exit_code) == ("logs.none", 2)
    assert error.do == "drawdown runs sales --id r1"


def test_a_run_that_is_not_there_is_refused_with_the_nearest(project: Path) -> None:
    assert (refusal("sales").id, refusal("slaes").id) == ("cli.no-run", "cli.no-pipeline")
    ran(project, "20260131T093000-1a2b3c4d")
    assert "did you mean '20260131T093000-1a2b3c4d'?" in refusal("sales", "20260131T093001-1a2b3c4d").what
