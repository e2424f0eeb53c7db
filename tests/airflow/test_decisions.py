"""A held slice is decided about in Airflow: a request, an answer, visible rows, an asset event, and the
pipelines that wait for it."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from deltalake import DeltaTable

from dev.airflow.home import LocalAirflow
from drawdown.errors import MachineError
from drawdown.held.decide import Decision, decide
from drawdown.metastore import Metastore, this_process
from drawdown.metastore.records import Counts, HeldSlice, Run
from drawdown.spec import load_pipeline, load_project
from drawdown.workspace import Workspace
from tests.support.airflow_runs import assert_success
from tests.support.airflow_users import api_of, users
from tests.support.asked import Request
from tests.support.asset_events import asset_events
from tests.support.browser import Browser
from tests.support.dag_project import FAILS_ON_TWO, DagProject
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(900)

RAISES = "select id, cast(raise_error('no such name') as string) as name from events"
FOLLOWING = """
schedule: ["asset:{upstream}"]
sources:
  rows: {{format: delta, path: tables/{upstream}}}
transform: transform.sql
sink: {{format: delta, path: tables/{name}, schema: schemas/events.ddl}}
state: {{partitions: 1}}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> DagProject:
    project = DagProject(tmp_path_factory.mktemp("held") / "project", retries=0)
    # Freshness is asked for apart from the runs: one that fails is a failed run all the same.
    project.pipeline("events", "freshness: 1 day", quality=FAILS_ON_TWO)
    follow(project, "tens", "events")
    follow(project, "hundreds", "tens")
    project.pipeline("stale", 'schedule: "@yearly"\nfreshness: 1 microsecond')
    project.pipeline("fresh", 'schedule: "@yearly"\nfreshness: 1 day')
    for name in ("stale", "fresh"):
        (project.storage / "landing" / name).mkdir(parents=True)
        record_a_publish(project, name)
    folder = project.pipeline("raises", "freshness: 1 day", quality=FAILS_ON_TWO)
    (folder / "transform.sql").write_text(RAISES)
    project.pipeline("copies")
    project.pipeline("sealed", "approvers: [grace]")
    return project


@pytest.fixture(scope="module")
def airflow(project: DagProject) -> Iterator[LocalAirflow]:
    with LocalAirflow(project.root, project.root / "airflow", extra_env=users(grace="op")) as started:
        for name in ("events", "tens", "hundreds", "raises", "copies", "sealed"):
            started.unpause(name)
        yield started


@contextmanager
def somebody_draining(project: DagProject, name: str) -> Iterator[None]:
    """The pipeline's lease, held as a drain holds it."""
    with Metastore.open(load_project(project.root).metastore_url) as metastore:
        lease = metastore.acquire(name, this_process(), "a-drain", timedelta(minutes=10))
        yield
        metastore.release(lease)


def follow(project: DagProject, name: str, upstream: str) -> None:
    """A pipeline that multiplies the table of another by ten, whenever that one has published."""
    folder = project.pipeline(name)
    (folder / "pipeline.yaml").write_text(FOLLOWING.format(name=name, upstream=upstream))
    (folder / "transform.sql").write_text("SELECT id * 10 AS id, name FROM rows")


def record_a_publish(project: DagProject, name: str) -> None:
    with Metastore.open(load_project(project.root).metastore_url) as metastore:
        metastore.start_run(Run(f"{name}-1", name))
        metastore.finish_run(f"{name}-1", "succeeded", counts=Counts(published=1))


@pytest.mark.full
@pytest.mark.timeout(2400)
def test_a_held_slice_is_released_in_a_browser_and_the_pipelines_behind_it_run(
    airflow: LocalAirflow, project: DagProject, browser: Browser
) -> None:
    project.land("events", 1, 2)
    assert drain(airflow) == ("failed", {"audit": "failed", "publish": "upstream_failed", "ask": "success"})
    [held] = held_slices(project)
    run_id = f"held__events__{held.key}"
    request = open_request(airflow, run_id)
    assert request["options"] == ["release", "discard"]
    assert "2 rows" in request["subject"]
    assert "expect_column_values_to_not_be_in_set" in request["body"]

    # The request stays open, and drains go on.
    project.land("events", 3)
    assert drain(airflow) == ("success", {"audit": "success", "publish": "skipped", "ask": "skipped"})
    assert project.ids("events") == []

    answer(airflow, run_id, "release", "")
    assert open_request(airflow, run_id), "asked again: there was no reason"
    assert airflow.runs("tens") == {}, "what is held moves nobody"
    with somebody_draining(project, "events"):
        answer_in_a_browser(browser, run_id, "release", "looked at")
        until(lambda: airflow.task_states("drawdown__decide", run_id)["decide"] == "up_for_reschedule")
        assert project.ids("events") == []
    assert_success(airflow, "drawdown__decide", run_id, 240)
    decide_task = airflow.api.call(
        "GET", "dags", "drawdown__decide", "dagRuns", run_id, "taskInstances", "decide"
    )
    assert decide_task["try_number"] == 1, "one try, and one log, however long it waits"
    assert project.ids("events") == [1, 2, 3]
    assert held_slices(project) == []
    decision = last_run(project)
    assert (decision.kind, decision.state) == ("release", "succeeded")
    assert (decision.origin["by"], decision.origin["why"]) == (airflow.user, "looked at")
    seconds = airflow.task_seconds("drawdown__decide", run_id)
    print("decide took", seconds)
    [event] = decided(airflow)
    assert event["source_dag_id"] == "drawdown__decide"
    assert (event["extra"]["rows"], event["extra"]["decision"]) == (3, "release")

    for name, rows in (("tens", [10, 20, 30]), ("hundreds", [100, 200, 300])):
        [run_id] = until(lambda name=name: airflow.runs(name))
        assert_success(airflow, name, run_id, 800)
        assert project.ids(name) == rows
        run = airflow.api.call("GET", "dags", name, "dagRuns", run_id)
        assert run["run_type"] == "asset_triggered"
    airflow.api.call("PATCH", "dags", "tens", body={"is_paused": True})


@pytest.mark.full
def test_an_answer_after_a_decision_by_command_is_told_so_and_changes_nothing(
    airflow: LocalAirflow, project: DagProject
) -> None:
    project.land("events", 4)
    drain(airflow)
    [held] = held_slices(project)
    run_id = f"held__events__{held.key}"
    open_request(airflow, run_id)
    known = load_project(project.root)
    with Metastore.open(known.metastore_url) as metastore:
        begun = time.monotonic()
        decide(
            Workspace(known, metastore),
            load_pipeline(known, "events"),
            Decision("release", "by-command", "here", "ada", "known"),
        )
        print("release took", time.monotonic() - begun)
    before = project.ids("events")
    answer(airflow, run_id, "discard", "no")
    airflow.wait("drawdown__decide", run_id, 240)
    assert airflow.task_states("drawdown__decide", run_id)["choose"] == "failed"
    log = airflow.task_log("drawdown__decide", run_id, "choose")
    assert "was released by ada" in log
    assert project.ids("events") == before == [1, 2, 3, 4]
    assert last_run(project).run_id == "by-command"
    assert decided(airflow)[-1]["extra"]["by"] == "ada", "the asset is told of it all the same"


@pytest.mark.full
def test_a_discard_is_a_success_that_says_what_was_deleted_by_whom_and_why(
    airflow: LocalAirflow, project: DagProject
) -> None:
    project.land("guarded", 4)
    airflow.wait("guarded", airflow.trigger("guarded"), 400)
    with Metastore.open(load_project(project.root).metastore_url) as metastore:
        [held] = metastore.held_slices("guarded")
    run_id = f"held__guarded__{held.key}"
    request = Request(airflow, "drawdown__decide", run_id, "choose")
    request.opened()
    before = len(decided(airflow))
    request.answer("discard", "a test order", api_of(airflow, "grace"))
    assert_success(airflow, "drawdown__decide", run_id, 240)
    assert airflow.task_states("drawdown__decide", run_id)["decide"] == "success"
    said = r"guarded: 1 row of batch \d+ discarded, by grace: a test order"
    assert re.search(said, airflow.task_log("drawdown__decide", run_id, "decide"))
    assert 4 not in project.ids("guarded")
    assert len(decided(airflow)) == before, "nothing became visible"


@pytest.mark.full
def test_what_was_published_too_long_ago_is_a_failed_task_of_its_pipeline(airflow: LocalAirflow) -> None:
    run_id = airflow.trigger("drawdown__freshness")
    assert airflow.wait("drawdown__freshness", run_id, 240) == "failed"
    states = airflow.task_states("drawdown__freshness", run_id)
    assert {name: states[name] for name in ("stale", "fresh")} == {"stale": "failed", "fresh": "success"}
    assert (states["record-figures"], states["send-alerts"]) == ("success", "success")
    assert "published last at" in airflow.task_log("drawdown__freshness", run_id, "stale")


@pytest.mark.full
def test_a_drain_that_fails_is_a_failed_run_although_its_freshness_is_asked_for(
    airflow: LocalAirflow, project: DagProject
) -> None:
    project.land("raises", 1)
    run_id = airflow.trigger("raises")
    assert airflow.wait("raises", run_id, 240) == "failed"
    assert airflow.task_states("raises", run_id) == {
        "preflight": "success",
        "drain": "failed",
        "audit": "failed",
        "publish": "upstream_failed",
        "ask": "skipped",
    }
    assert "no such name" in airflow.task_log("raises", run_id, "drain")


@pytest.mark.full
def test_nobody_starts_a_request_by_hand(airflow: LocalAirflow) -> None:
    run_id = airflow.trigger("drawdown__decide")
    assert airflow.wait("drawdown__decide", run_id, 240) == "failed"
    assert "a held slice starts this DAG" in airflow.task_log("drawdown__decide", run_id, "choose")


@pytest.mark.full
def test_a_rebuild_is_approved_by_an_answer_and_the_asset_knows(
    airflow: LocalAirflow, project: DagProject
) -> None:
    project.land("copies", 1, 2)
    assert_success(airflow, "copies", airflow.trigger("copies"), 400)
    following = shutil.copytree(folder := project.root / "include/pipelines/copies", folder / "next")
    (following / "schemas/events.ddl").write_text("id BIGINT, name STRING, twice BIGINT")
    (following / "transform.sql").write_text("select id, name, id * 2 as twice from events")

    run_id = airflow.trigger("drawdown__rebuild", conf={"pipeline": "copies"})
    request = Request(airflow, "drawdown__rebuild", run_id, "approve")
    asked = request.opened()
    approve, reject = asked["options"]
    assert (approve.split(" ")[0], reject.split(" ")[0]) == ("approve", "reject")
    assert "columns added: twice" in asked["body"]
    assert "rows: 2 live, 2 rebuilt" in asked["body"]
    compared = compare_again(project, "copies", {"rows": {"live": 2, "shadow": 3}})
    request.answer(approve, "of what is not there any more")
    assert airflow.wait("drawdown__rebuild", run_id, 240) == "failed"
    assert "rebuild.another" in airflow.task_log("drawdown__rebuild", run_id, "approve")
    assert project.ids("copies") == [1, 2]
    compare_again(project, "copies", compared)
    clear(airflow, "drawdown__rebuild", run_id, "approve")
    request.opened()
    request.answer(approve, "twice is wanted")
    assert_success(airflow, "drawdown__rebuild", run_id, 240)
    table = DeltaTable(str(project.storage / "tables/copies")).to_pyarrow_table()
    assert sorted(table.column("twice").to_pylist()) == [2, 4]
    with Metastore.open(load_project(project.root).metastore_url) as metastore:
        done = metastore.runs("copies")[0]
    assert (done.kind, done.state) == ("rebuild-swap", "succeeded")
    assert (done.origin["by"], done.origin["why"]) == (airflow.user, "twice is wanted")
    [event] = [each for each in asset_events(airflow) if each["extra"].get("rebuilt")]
    assert (event["source_dag_id"], event["extra"]["generation"]) == ("drawdown__rebuild", 2)

    clear(airflow, "drawdown__rebuild", run_id, "swap")
    assert_success(airflow, "drawdown__rebuild", run_id, 240)
    assert airflow.task_states("drawdown__rebuild", run_id)["swap"] == "skipped"

    project.land("copies", 3)
    run_id = airflow.trigger("copies")
    assert_success(airflow, "copies", run_id, 400)
    assert project.ids("copies") == [1, 2, 3]
    told = told_of("copies", airflow)
    assert [(event["batch_ids"], event["rows"]) for event in told] == [([0, 1], 2), ([2, 2], 1)]
    clear(airflow, "copies", run_id, "publish")
    assert_success(airflow, "copies", run_id, 240)
    assert airflow.task_states("copies", run_id)["publish"] == "skipped"
    assert told_of("copies", airflow) == told


@pytest.mark.full
def test_a_rebuild_is_rejected_by_an_approver_and_drains_go_on(
    airflow: LocalAirflow, project: DagProject
) -> None:
    project.land("sealed", 1)
    assert_success(airflow, "sealed", airflow.trigger("sealed"), 400)
    following = shutil.copytree(folder := project.root / "include/pipelines/sealed", folder / "next")
    spec = following / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("approvers: [grace]", "approvers: [admin]"))
    (following / "transform.sql").write_text("select id, upper(name) as name from events")

    run_id = airflow.trigger("drawdown__rebuild", conf={"pipeline": "sealed"})
    request = Request(airflow, "drawdown__rebuild", run_id, "approve")
    asked = request.opened()
    assert asked["assigned_users"] == [{"id": "grace", "name": "grace"}], "what is judged names no judge"
    project.land("sealed", 2)
    assert_success(airflow, "sealed", airflow.trigger("sealed"), 400)
    reject = asked["options"][1]
    with pytest.raises(MachineError, match=r"403.*is not a respondent"):
        request.answer(reject, "I am admin")
    with Metastore.open(load_project(project.root).metastore_url) as metastore:
        shadow = metastore.of_rebuilds.active_checkpoint("sealed")
        assert shadow is not None, "who may not decide has decided nothing"

    request.answer(reject, "names stay as they are", api_of(airflow, "grace"))
    assert_success(airflow, "drawdown__rebuild", run_id, 240)
    states = airflow.task_states("drawdown__rebuild", run_id)
    assert states == {"preflight": "success", "rebuild": "success", "approve": "success", "swap": "success"}
    with Metastore.open(load_project(project.root).metastore_url) as metastore:
        assert metastore.of_rebuilds.active_checkpoint("sealed") is None
        done, answered = metastore.runs("sealed", limit=2)
    assert (done.kind, done.state, answered.kind) == ("rebuild-discard", "succeeded", "answer")
    assert (done.origin["by"], done.origin["why"]) == ("grace", "names stay as they are")
    table = project.storage / "tables/sealed"
    assert not list((table / "_rebuild").rglob("*.parquet"))
    assert not [event for event in asset_events(airflow) if event["extra"].get("run_id") == done.run_id]

    project.land("sealed", 3)
    assert_success(airflow, "sealed", airflow.trigger("sealed"), 400)
    names = DeltaTable(str(table)).to_pyarrow_table().column("name").to_pylist()
    assert sorted(names) == ["event 1", "event 2", "event 3"], "each once, and of the version in use"


def compare_again(project: DagProject, name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """As `drawdown rebuild start` does, with some other results; what was compared before."""
    with Metastore.open(load_project(project.root).metastore_url) as metastore:
        beside = metastore.of_rebuilds
        shadow = beside.active_checkpoint(name)
        assert shadow is not None
        before: dict[str, Any] = shadow.rebuild["comparison"]
        lease = beside.acquire(name, "here", f"compared-{time.monotonic_ns()}", timedelta(minutes=1))
        rebuild = {**shadow.rebuild, "comparison": {**before, **changes}}
        beside.change_generations(lease, {shadow.generation: {"rebuild": rebuild}})
        beside.release(lease)
    return before


def clear(airflow: LocalAirflow, dag_id: str, run_id: str, task_id: str) -> None:
    """The task and what follows it, as the button does."""
    body = {
        "dry_run": False, "only_failed": False, "dag_run_id": run_id, "task_ids": [task_id],
        "include_downstream": True, "reset_dag_runs": True,
    }  # fmt: skip
    airflow.api.call("POST", "dags", dag_id, "clearTaskInstances", body=body)


def drain(airflow: LocalAirflow) -> tuple[str, dict[str, str | None]]:
    run_id = airflow.trigger("events")
    state = airflow.wait("events", run_id, 400)
    states = airflow.task_states("events", run_id)
    return state, {task: states[task] for task in ("audit", "publish", "ask")}


def held_slices(project: DagProject) -> list[HeldSlice]:
    with Metastore.open(load_project(project.root).metastore_url) as metastore:
        return metastore.held_slices("events")


def last_run(project: DagProject) -> Run:
    with Metastore.open(load_project(project.root).metastore_url) as metastore:
        return metastore.runs("events")[0]


def open_request(airflow: LocalAirflow, run_id: str) -> dict[str, Any]:
    return Request(airflow, "drawdown__decide", run_id, "choose").opened()


def answer(airflow: LocalAirflow, run_id: str, choice: str, why: str) -> None:
    Request(airflow, "drawdown__decide", run_id, "choose").answer(choice, why)


def answer_in_a_browser(browser: Browser, run_id: str, choice: str, why: str) -> None:
    page = browser.page
    browser.open("required_actions")
    page.get_by_role("row").filter(has_text=run_id).get_by_role("link", name="release or discard").click()
    page.locator("[name=element_why]").fill(why)
    button = page.get_by_role("button", name=choice, exact=True)
    button.scroll_into_view_if_needed()
    browser.picture("held-slice")
    button.click()


def told_of(pipeline: str, airflow: LocalAirflow) -> list[dict[str, Any]]:
    """What the events of its drains carry."""
    found = [event["extra"] for event in asset_events(airflow)]
    return [extra for extra in found if extra.get("pipeline") == pipeline and "batch_ids" in extra]


def decided(airflow: LocalAirflow) -> list[dict[str, Any]]:
    return [event for event in asset_events(airflow) if event["extra"].get("decision")]
