"""What people start and answer in a running Airflow: a replay of quarantined rows from the page of the
quarantine, a decision that is one approver's, a rebuild."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import expect

from dev.airflow.home import LocalAirflow
from drawdown.airflow.tasks.preflight import PreflightOperator
from drawdown.airflow.tasks.quarantine_replay import asked_replay
from drawdown.airflow.tasks.task_failures import TaskFailed
from drawdown.errors import MachineError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run
from drawdown.spec import load_project
from tests.support.airflow_runs import assert_success
from tests.support.airflow_users import api_of, users
from tests.support.asked import Request
from tests.support.asset_events import asset_events
from tests.support.browser import Browser
from tests.support.dag_project import FAILS_ON_TWO, ROOT, DagProject

pytestmark = pytest.mark.timeout(900)

RULE = "rules: [{name: small, check: id < 5, on_fail: quarantine}]\n"
WHY = "ids go up to 99 since May"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> DagProject:
    project = DagProject(tmp_path_factory.mktemp("set_aside") / "project", retries=0)
    for name in ("events", "others"):
        project.pipeline(name, "group: both", quality=RULE)
        project.land(name, 1, 7, 9)
    project.pipeline("guarded", "approvers: [grace]", quality=FAILS_ON_TWO)
    project.pipeline("new", 'schedule: "@yearly"')
    (project.root / "plugins").symlink_to(ROOT / "plugins")
    return project


@pytest.fixture(scope="module")
def airflow(project: DagProject) -> Iterator[LocalAirflow]:
    with LocalAirflow(project.root, project.root / "airflow", extra_env=users(grace="op")) as started:
        for name in ("both", "guarded"):
            started.unpause(name)
        yield started


def newest(project: DagProject, name: str) -> Run:
    with Metastore.open(load_project(project.root).metastore_url) as metastore:
        return metastore.runs(name)[0]


@pytest.mark.capability("SEE-04")
def test_the_page_starts_a_run_that_replays_what_it_shows(
    project: DagProject, airflow: LocalAirflow, browser: Browser
) -> None:
    assert_success(airflow, "both", airflow.trigger("both"), 300)
    assert project.ids("events") == [1]
    quality = project.root / "include/pipelines/events/quality.yaml"
    quality.write_text(RULE.replace("id < 5", "id < 9"))
    project.land("others", 2)

    page = browser.page
    browser.open()
    page.get_by_role("link", name="Fleet").first.click()
    inside = page.frame_locator("iframe")
    inside.get_by_role("link", name="events", exact=True).click()
    inside.get_by_role("link", name="Quarantine").first.click()
    inside.get_by_label("Why").fill(WHY)
    inside.get_by_role("button", name="Replay 2 open rows").click()
    expect(inside.get_by_text("The run has been created.")).to_be_visible()
    inside.get_by_role("link", name="Look at it in Airflow").click()
    page.wait_for_url("**/dags/both/runs/*")
    run_id = list(airflow.runs("both"))[-1]

    assert_success(airflow, "both", run_id, 300)
    states = airflow.task_states("both", run_id)
    assert {task: states[task] for task in ("drain", "events.audit", "events.publish", "others.audit")} == {
        "drain": "success",
        "events.audit": "success",
        "events.publish": "success",
        "others.audit": "skipped",
    }
    assert project.ids("events") == [1, 7], "9 breaks the new rule, too"
    assert project.ids("others") == [1], "its rows are none of this run's"
    run = newest(project, "events")
    assert (run.kind, run.counts.replayed, run.counts.published) == ("quarantine-replay", 1, 1)
    assert (run.origin["dag_run_id"], run.origin["by"], run.origin["why"]) == (run_id, airflow.user, WHY)
    told = [event["extra"] for event in asset_events(airflow) if event["extra"]["pipeline"] == "events"]
    assert [(extra["rows"], extra["run_id"]) for extra in told][-1] == (1, run.run_id)


def test_a_replay_before_the_first_run_is_refused_before_spark(tmp_path: Path) -> None:
    project = DagProject(tmp_path / "project")
    project.pipeline("events")
    preflight = PreflightOperator(task_id="preflight", project_root=str(project.root), pipelines=["events"])
    params = {"quarantine": {"rules": ["small"]}}
    context: Any = {"params": params, "dag_run": SimpleNamespace(triggering_user_name=None)}
    with pytest.raises(TaskFailed, match=r"quarantine\.none"):
        preflight.execute(context)
    assert not (project.storage / "tables").exists()


@pytest.mark.parametrize("asked", [None, {}])
def test_what_airflows_dialog_sends_for_an_empty_field_is_a_drain(asked: dict[str, object] | None) -> None:
    context: Any = {"params": {"quarantine": asked}}
    assert asked_replay(context, ["events"]) is None


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"rules": ["small"]}, "'pipeline' is a dependency of 'rules'"),
        ({"pipeline": "nosuch"}, "'nosuch' is not one of"),
        ({"pipeline": "events", "rule": ["small"]}, "'rule' was unexpected"),
        ({"pipeline": "events", "batches": ["one"]}, "'one' is not of type 'integer'"),
    ],
)
def test_airflow_refuses_a_request_that_does_not_fit(
    airflow: LocalAirflow, asked: dict[str, object], says: str
) -> None:
    before = airflow.runs("both")
    body = {"logical_date": None, "conf": {"quarantine": asked}}
    with pytest.raises(MachineError) as refused:
        airflow.api.call("POST", "dags", "both", "dagRuns", body=body)
    assert says in str(refused.value)
    assert airflow.runs("both") == before


def test_only_an_approver_decides(airflow: LocalAirflow, project: DagProject) -> None:
    project.land("guarded", 2)
    drained = airflow.trigger("guarded")
    airflow.wait("guarded", drained, 400)
    with Metastore.open(load_project(project.root).metastore_url) as metastore:
        [held] = metastore.held_slices("guarded")
    run_id = f"held__guarded__{held.key}"
    page = f"{airflow.url}/dags/drawdown__decide/runs/{run_id}/tasks/choose/required_actions"
    for task, begins in (
        ("drain", "Permanent error, not retried: guarded: audit.fail: the slice of guarded is not published"),
        ("audit", "audit of guarded: fail"),
    ):
        assert_failed_plainly(
            airflow,
            "guarded",
            drained,
            task,
            begins,
            f"Held: 1 row of guarded (batch 0). Answer it under Required Actions: {page}",
        )
    request = Request(airflow, "drawdown__decide", run_id, "choose")
    assert request.opened()["assigned_users"] == [{"id": "grace", "name": "grace"}]
    with pytest.raises(MachineError, match=r"403.*is not a respondent"):
        request.answer("release", "I am admin")
    request.answer("release", "looked at", api_of(airflow, "grace"))
    assert_success(airflow, "drawdown__decide", run_id, 240)
    assert project.ids("guarded") == [2]
    with Metastore.open(load_project(project.root).metastore_url) as metastore:
        decision, answered = metastore.runs("guarded", limit=2)
    assert (decision.kind, answered.kind) == ("release", "answer")
    assert (decision.origin["by"], decision.origin["why"]) == ("grace", "looked at")


def test_a_rebuild_that_cannot_be_made_starts_no_spark(airflow: LocalAirflow) -> None:
    run_id = airflow.trigger("drawdown__rebuild", conf={"pipeline": "new"})
    assert airflow.wait("drawdown__rebuild", run_id, 240) == "failed"
    assert airflow.task_states("drawdown__rebuild", run_id)["rebuild"] == "upstream_failed"
    assert "rebuild.nothing-live" in airflow.task_log("drawdown__rebuild", run_id, "preflight")


def assert_failed_plainly(
    airflow: LocalAirflow, dag_id: str, run_id: str, task_id: str, begins: str, *holds: str
) -> None:
    """The task's last error says what happened, and no stack trace is in its log."""
    events = [event for event in log_events(airflow, dag_id, run_id, task_id) if "level" in event]
    assert not [event for event in events if event.get("error_detail")]
    assert not [event for event in events if "--conf" in event["event"] and event["level"] != "debug"]
    said, ended = [event["event"] for event in events if event["level"] in ("warning", "error", "critical")]
    assert ended == "Task exited", "Airflow's own word"
    assert said.startswith(begins)
    for text in holds:
        assert text in said


def log_events(airflow: LocalAirflow, dag_id: str, run_id: str, task_id: str) -> list[dict[str, Any]]:
    path = ("dags", dag_id, "dagRuns", run_id, "taskInstances", task_id, "logs", "1")
    answer = airflow.api.call("GET", *path, full_content="true") or {"content": []}
    return [event for event in answer["content"] if isinstance(event, dict)]
