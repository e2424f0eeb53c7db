"""What Airflow's own DagBag makes of a project's folders."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pendulum
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG, BaseOperator, TriggerRule
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction

from drawdown.airflow import factory
from drawdown.airflow.replay_timetable import ReplayTimetable
from drawdown.spec import Project, loader
from tests.support.dag_project import ROOT, DagProject


@pytest.fixture
def project(tmp_path: Path) -> DagProject:
    return DagProject(tmp_path / "project")


def bag(project: DagProject) -> DagBag:
    return DagBag(dag_folder=project.root / "dags", bundle_path=project.root / "dags")


def only_dag(project: DagProject, dag_id: str) -> DAG:
    found = bag(project)
    assert found.import_errors == {}
    return found.dags[dag_id]


def downstream(dag: DAG) -> dict[str, set[str]]:
    return {task.task_id: set(task.downstream_task_ids) for task in dag.tasks}


def test_a_pipeline_is_a_dag_of_four_tasks(project: DagProject) -> None:
    project.pipeline("events", 'schedule: "5 * * * *"')
    dag = only_dag(project, "events")
    assert downstream(dag) == {
        "preflight": {"drain"},
        "drain": {"audit"},
        "audit": {"publish"},
        "publish": set(),
    }
    assert dag.tags == {"drawdown", "test"}
    assert dag.max_active_runs == 1
    assert dag.catchup is False
    assert dag.schedule == "5 * * * *"


def test_one_dag_asks_about_the_held_slices_of_all_pipelines_that_can_have_any(project: DagProject) -> None:
    expects = "expectations: [{type: expect_column_values_to_not_be_null, kwargs: {column: id}}]"
    project.pipeline("events", quality=expects)
    project.pipeline("people", quality=expects)
    project.pipeline("places", 'schedule: "@daily"\nfreshness: 3 hours')
    dags = bag(project).dags
    assert set(dags) == {
        "events",
        "people",
        "places",
        "drawdown__decide",
        "drawdown__freshness",
        "drawdown__rebuild",
        "drawdown__upkeep",
    }
    assert downstream(dags["drawdown__decide"]) == {"choose": {"decide"}, "decide": set()}
    assert downstream(dags["events"])["audit"] == {"publish", "ask"}
    assert dags["events"].get_task("ask").trigger_dag_id == "drawdown__decide"
    assert set(dags["drawdown__decide"].get_task("choose").options) == {"release", "discard"}
    for dag_id, task_id in (("drawdown__decide", "decide"), ("drawdown__rebuild", "swap")):
        waiting = dags[dag_id].get_task(task_id)
        assert (waiting.mode, waiting.retries) == ("reschedule", 2), "a try and its log are not one per look"


def test_one_dag_looks_how_old_the_data_are_whatever_becomes_of_their_runs(project: DagProject) -> None:
    project.pipeline("places", "freshness: 3 hours", owner="ada")
    project.pipeline("people", "freshness: 1 day\ngroup: others")
    project.pipeline("events")
    dag = only_dag(project, "drawdown__freshness")
    shared = {"record-figures": {"send-alerts"}, "send-alerts": set(), "end-overdue-clusters": set()}
    assert downstream(dag) == {**shared, "places": set(), "people": set()}
    assert dag.get_task("places").owner == "ada"
    assert (dag.schedule, dag.catchup, dag.max_active_runs) == ("*/10 * * * *", False, 1)


def test_the_tasks_for_all_pipelines_take_no_pipelines_name(project: DagProject) -> None:
    """A task of the same id would take the DAGs of all pipelines along."""
    for name in ("record_figures", "send_alerts", "figures", "alerts"):
        project.pipeline(name, "freshness: 1 day")
    dag = only_dag(project, "drawdown__freshness")
    assert len(dag.tasks) == 7


def serialised(root: Path) -> dict[str, str]:
    """The DAGs as Airflow keeps them, without the names of the files that they are in."""
    dags = DagBag(dag_folder=root / "dags", bundle_path=root / "dags").dags
    found = {id: json.dumps(DagSerialization.to_dict(dag)) for id, dag in dags.items()}
    return {id: re.sub(r'"(relative_)?fileloc": "[^"]*"', "", text) for id, text in found.items()}


def test_a_project_that_moves_with_every_commit_keeps_its_state_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = DagProject(tmp_path / "one")
    project.pipeline("events", "freshness: 1 day")
    shutil.copytree(project.root, tmp_path / "two", symlinks=True)
    link = tmp_path / "current"
    link.symlink_to(project.root)
    refused = DagBag(dag_folder=link / "dags", bundle_path=link / "dags")
    [error] = refused.import_errors.values()
    assert "project.state-moves: storage_root and metastore of include/project.yaml" in error
    assert "DRAWDOWN_STATE" in error

    monkeypatch.setenv("DRAWDOWN_STATE", str(tmp_path / "state"))
    before = serialised(link)
    link.unlink()
    link.symlink_to(tmp_path / "two")
    after = serialised(link)
    assert set(before) >= {"events", "drawdown__freshness", "drawdown__rebuild"}
    assert after == before, "a deployment alone makes no new version of a DAG"


def test_a_bundle_that_airflow_keeps_by_version_keeps_no_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH", str(tmp_path / "bundles"))
    project = DagProject(tmp_path / "bundles" / "git" / "versions" / "0a1b")
    project.pipeline("events")
    [error] = bag(project).import_errors.values()
    assert "project.state-moves" in error
    monkeypatch.setenv("DRAWDOWN_STATE", str(tmp_path / "state"))
    assert bag(project).import_errors == {}


OWN = """
airflow: {queue: big, priority_weight: 5, pool: big, retries: 0, retry_delay: 3 minutes,
  execution_timeout: 6 hours, task_timeout: 5 minutes}
"""


def test_every_task_ends_in_time_and_a_pipeline_says_how_its_own_are_run(project: DagProject) -> None:
    expects = "expectations: [{type: expect_column_values_to_not_be_null, kwargs: {column: id}}]"
    project.pipeline("people", "freshness: 1 day", quality=expects)
    project.pipeline("events", OWN + "freshness: 1 day", quality=expects)
    dags = bag(project).dags
    waits_for_a_person = {"choose", "approve"}
    for dag in dags.values():
        for task in dag.tasks:
            assert (task.execution_timeout is None) == (task.task_id in waits_for_a_person), task
    half_an_hour, an_hour = timedelta(minutes=30), timedelta(hours=1)
    drain, audit = (dags["people"].get_task(name) for name in ("drain", "audit"))
    assert (drain.execution_timeout, drain.pool, drain.queue) == (an_hour, "drawdown", "default")
    assert (audit.execution_timeout, audit.pool, audit.retries) == (half_an_hour, "default_pool", 2)
    drain, audit = (dags["events"].get_task(name) for name in ("drain", "audit"))
    assert (drain.execution_timeout, drain.pool, drain.queue) == (timedelta(hours=6), "big", "big")
    assert (audit.execution_timeout, audit.pool, audit.queue) == (
        timedelta(minutes=5),
        "default_pool",
        "big",
    )
    for task in (drain, audit):
        assert (task.retries, task.retry_delay, task.priority_weight) == (0, timedelta(minutes=3), 5)
    fresh = dags["drawdown__freshness"].get_task("events")
    assert (fresh.execution_timeout, fresh.queue) == (timedelta(minutes=5), "big")


VARIANTS = {
    "plain": "",
    "freshness": "freshness: 3 hours",
    "group": "group: several",
    "freshness and group": "freshness: 3 hours\ngroup: several",
    "cluster": "cluster: one",
    "all of them": 'freshness: 3 hours\ngroup: several\ncluster: one\nschedule: "@daily"',
}
SPUN = "clusters: {local: {}, one: {kind: standalone, workers: 1, worker_memory: 512m}}"


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_in_which_anything_failed_is_a_failed_run(tmp_path: Path, variant: str) -> None:
    """As Airflow judges runs: by the tasks behind which no other is, teardowns left aside."""
    project = DagProject(tmp_path, more=SPUN)
    expects = "expectations: [{type: expect_column_values_to_not_be_null, kwargs: {column: id}}]"
    project.pipeline("events", VARIANTS[variant], quality=expects)
    # `decide` looks itself at what became of `choose`: nobody may have answered.
    dags = {id: dag for id, dag in bag(project).dags.items() if id != "drawdown__decide"}
    judged = 0
    for dag in dags.values():
        for task in dag.tasks:
            for state in ("failed", "upstream_failed"):
                run = run_in_which(dag, task.task_id, state)
                # What a person is asked about is another's failure: `ask` follows whatever became of audit.
                assert task.task_id.endswith("ask") or run == "failed", f"{dag.dag_id}.{task.task_id}"
                judged += 1
        assert run_in_which(dag, None, "") == "success"
    assert judged > 10


def run_in_which(dag: DAG, failing: str | None, how: str) -> str:
    """The state of a run in which one task failed and all others went by their trigger rules."""
    states: dict[str, str] = {}
    for task in dag.topological_sort():
        above = {states[id] for id in task.upstream_task_ids}
        failed = bool(above & {"failed", "upstream_failed"})
        if task.task_id == failing:
            states[task.task_id] = how
        elif failed and task.trigger_rule not in (TriggerRule.ALL_DONE, TriggerRule.ALL_DONE_SETUP_SUCCESS):
            states[task.task_id] = "upstream_failed"
        elif task.task_id.endswith(("audit", "send-alerts")) and failed:
            states[task.task_id] = "failed"  # as they find out themselves: verdicts.py, tasks/figures.py
        else:
            states[task.task_id] = "success"
    ends = [task for task in dag.tasks if _is_judged(dag, task)]
    return "failed" if {states[t.task_id] for t in ends} & {"failed", "upstream_failed"} else "success"


def _is_judged(dag: DAG, task: BaseOperator) -> bool:
    def counts(one: BaseOperator) -> bool:
        return not one.is_teardown or bool(one.on_failure_fail_dagrun)

    return counts(task) and not any(counts(dag.get_task(id)) for id in task.downstream_task_ids)


def test_one_dag_tidies_up_behind_all_pipelines_when_the_project_says(tmp_path: Path) -> None:
    project = DagProject(tmp_path, more='upkeep: {schedule: "30 3 * * 0"}')
    project.pipeline("events")
    dag = only_dag(project, "drawdown__upkeep")
    assert downstream(dag) == {"upkeep": set()}
    assert (dag.schedule, dag.catchup, dag.max_active_runs) == ("30 3 * * 0", False, 1)


def test_the_drain_waits_for_the_pool_retries_after_the_lease_and_times_out(project: DagProject) -> None:
    project.pipeline("events")
    dag = only_dag(project, "events")
    drain = dag.get_task("drain")
    assert drain.pool == "drawdown"
    assert drain.retries == 2
    assert drain.retry_delay == timedelta(minutes=2)
    assert drain.execution_timeout == timedelta(hours=1)
    # The tasks without Spark do not wait behind drains.
    assert {task.pool for task in dag.tasks if task.task_id != "drain"} == {"default_pool"}


def test_one_dag_rebuilds_whichever_pipeline_it_is_given(project: DagProject) -> None:
    project.pipeline("events")
    dag = only_dag(project, "drawdown__rebuild")
    assert downstream(dag) == {
        "preflight": {"rebuild"},
        "rebuild": {"approve"},
        "approve": {"swap"},
        "swap": set(),
    }
    assert dag.params["pipeline"] == ""


def test_publish_updates_the_asset_that_others_are_scheduled_by(project: DagProject) -> None:
    project.pipeline("events")
    project.pipeline("reports", 'schedule: ["asset:events"]')
    dags = bag(project).dags
    [outlet] = dags["events"].get_task("publish").outlets
    assert (outlet.name, outlet.uri) == ("drawdown.events", "drawdown://events/")
    assert [outlet] == dags["reports"].schedule


@pytest.mark.parametrize(
    ("written", "schedule"),
    [('"@daily"', "@daily"), ("15 minutes", timedelta(minutes=15)), ("null", None)],
)
def test_a_schedule_may_be_a_preset_an_interval_or_none(
    project: DagProject, written: str, schedule: object
) -> None:
    project.pipeline("events", f"schedule: {written}")
    assert only_dag(project, "events").schedule == schedule


def test_a_group_is_one_dag_with_one_drain(project: DagProject) -> None:
    project.pipeline("events", "group: both", owner="ann")
    project.pipeline("people", "group: both", owner="bob")
    dag = only_dag(project, "both")
    assert downstream(dag) == {
        "preflight": {"drain"},
        "drain": {"events.audit", "people.audit"},
        "events.audit": {"events.publish"},
        "events.publish": set(),
        "people.audit": {"people.publish"},
        "people.publish": set(),
    }
    assert dag.get_task("drain").pipelines == ["events", "people"]
    assert dag.get_task("people.audit").owner == "bob"
    assert dag.get_task("people.audit").trigger_rule == "all_done"


def test_a_pipeline_that_says_replay_has_a_second_dag_that_schedules_nothing(project: DagProject) -> None:
    spec = project.pipeline("events", "replay: {interval: 6 hours}") / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("publish: audited", "time_column: at"))
    (spec.parent / "schemas" / "events.ddl").write_text("id BIGINT, at TIMESTAMP")
    dag = only_dag(project, "events__replay")
    assert downstream(dag) == {
        "preflight": {"replay"},
        "replay": {"audit"},
        "audit": {"publish"},
        "publish": set(),
    }
    assert dag.is_paused_upon_creation is False
    assert "drawdown backfill events" in dag.doc_md
    assert "`events__replay`" in only_dag(project, "events").doc_md
    table = ReplayTimetable.deserialize(dag.timetable.serialize())
    day = pendulum.datetime(2024, 1, 1, 3), pendulum.datetime(2024, 1, 2)
    of_scheduler, of_backfill = (TimeRestriction(*day, catchup=catchup) for catchup in (False, True))
    ask = table.next_dagrun_info
    assert ask(last_automated_data_interval=None, restriction=of_scheduler) is None
    first = ask(last_automated_data_interval=None, restriction=of_backfill)
    assert first is not None
    assert (first.data_interval.start.hour, first.data_interval.end.hour) == (6, 12)
    second = ask(last_automated_data_interval=first.data_interval, restriction=of_backfill)
    assert second is not None
    assert second.data_interval.start == first.data_interval.end


def test_without_the_plugin_a_replay_is_a_broken_dag_and_the_drain_is_not(project: DagProject) -> None:
    """Where the library lies on PYTHONPATH and is not installed, no entry point brings the plugin."""
    spec = project.pipeline("events", "replay: {interval: 1 day}") / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("publish: audited", "time_column: name"))
    probe = (
        "import importlib_metadata as installed, runpy; found = list(installed.distributions());"
        "installed.distributions = lambda **_: [each for each in found if each.name != 'drawdown'];"
        "dags = runpy.run_path('dags/drawdown.py');"
        "replay = dags['events__replay'];"
        "print(replay.get_task('broken').error.partition(':')[0], 'broken' in dags['events'].tags)"
    )
    environment = {**os.environ, "AIRFLOW__CORE__PLUGINS_FOLDER": str(project.root / "plugins")}
    said = subprocess.check_output(
        [sys.executable, "-c", probe], cwd=project.root, env=environment, text=True
    )
    assert said.splitlines()[-1] == "airflow.no-plugin False"


def test_a_backfill_is_refused_and_the_page_says_why(project: DagProject) -> None:
    project.pipeline("events", 'schedule: "5 * * * *"')
    dag = only_dag(project, "events")
    assert "backfill" not in dag.allowed_run_types
    assert {"scheduled", "manual", "asset_triggered"} <= dag.allowed_run_types
    assert "**Backfill**: switched off" in dag.doc_md


def test_the_page_says_what_is_read_written_and_expected(project: DagProject) -> None:
    project.pipeline(
        "events",
        quality="""
rules: [{name: named, check: "name <> '`<script>'", on_fail: quarantine}]
expectations: [{type: expect_column_values_to_not_be_null, kwargs: {column: id}}]
""",
    )
    page = only_dag(project, "events").doc_md
    assert "source `events`: json `landing/events`" in page
    assert "sink `tables/events`: delta, append, published audited" in page
    assert "rule `named` (quarantine): `name <> ''<script>'`" in page
    assert "expects (fail): `expect_column_values_to_not_be_null(id)`" in page


@pytest.mark.capability("OWN-04")
@pytest.mark.parametrize("what", ["drain_dag", "load_pipeline"])
def test_what_nobody_thought_of_breaks_one_dag_and_no_other(
    project: DagProject, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    project.pipeline("events")
    project.pipeline("people")
    module = factory if what == "drain_dag" else loader
    works = getattr(module, what)

    def fails(project: Project, named: str, *more: Any) -> Any:
        if named == "events":
            raise ValueError("a fault that has no name")
        return works(project, named, *more)

    monkeypatch.setattr(module, what, fails)
    dags = factory.build_dags(project.root)
    error = dags["events"].get_task("broken").error
    assert error.startswith("spec.unexpected: ")
    assert "a fault that has no name" in error
    assert "preflight" in dags["people"].task_ids


@pytest.mark.capability("OWN-04")
def test_a_broken_pipeline_shows_its_error_and_leaves_the_others_alone(project: DagProject) -> None:
    project.pipeline("events")
    project.pipeline("people", "schedul: hourly")
    found = bag(project)
    assert found.import_errors == {}
    assert len(found.dags["events"].tasks) == 4
    broken = found.dags["people"]
    assert broken.tags == {"drawdown", "broken"}
    assert broken.schedule is None
    assert "schedule" in broken.doc_md
    assert "include/pipelines/people/pipeline.yaml:" in broken.doc_md
    assert [task.task_id for task in broken.tasks] == ["broken"]


def test_a_folder_that_no_dag_can_be_named_after_is_shown_too(project: DagProject) -> None:
    project.pipeline("events")
    project.pipeline("My events!")
    of_all = {"drawdown__freshness", "drawdown__rebuild", "drawdown__upkeep"}
    assert set(bag(project).dags) == {"events", "My_events_", *of_all}


def test_a_group_on_two_clusters_is_refused(tmp_path: Path) -> None:
    project = DagProject(tmp_path / "project", more="clusters: {local: {}, big: {driver_memory: 2g}}")
    project.pipeline("events", "group: both")
    project.pipeline("people", "group: both\ncluster: big")
    dags = bag(project).dags
    assert "both" not in dags
    assert all("spec.group-cluster" in dags[name].doc_md for name in ("events", "people"))


def test_a_pipeline_named_like_a_group_is_refused(project: DagProject) -> None:
    project.pipeline("both")
    project.pipeline("people", "group: both")
    assert "spec.group-name" in bag(project).dags["both"].doc_md


@pytest.mark.parametrize("own", ["drawdown__upkeep", "drawdown__rebuild", "drawdown__decide"])
def test_a_pipeline_named_like_a_dag_of_our_own_takes_that_ones_place_from_nobody(
    project: DagProject, own: str
) -> None:
    project.pipeline("events")
    whole = set(bag(project).dags)
    project.pipeline(own)
    dags = bag(project).dags
    assert set(dags) == {*whole, f"{own}_"}
    assert "broken" in dags[f"{own}_"].tags
    assert "spec.taken-name" in dags[f"{own}_"].doc_md
    assert not [name for name in whole if "broken" in dags[name].tags]


@pytest.mark.parametrize("as_group", [False, True])
def test_a_pipeline_named_like_the_replays_of_another_takes_their_place_from_nobody(
    project: DagProject, as_group: bool
) -> None:
    spec = project.pipeline("events", "replay: {interval: 6 hours}") / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("publish: audited", "time_column: at"))
    (spec.parent / "schemas" / "events.ddl").write_text("id BIGINT, at TIMESTAMP")
    whole = set(bag(project).dags)
    if as_group:
        project.pipeline("people", "group: events__replay")
    else:
        project.pipeline("events__replay")
    dags = bag(project).dags
    taker = "people" if as_group else "events__replay_"
    assert set(dags) == {*whole, taker}
    assert "spec.taken-name" in dags[taker].doc_md
    assert "'events'" in dags[taker].doc_md
    assert set(dags["events__replay"].task_ids) == {"preflight", "replay", "audit", "publish"}
    assert not [name for name in whole if "broken" in dags[name].tags]


def test_a_pipeline_may_end_like_replays_of_one_that_has_none(project: DagProject) -> None:
    project.pipeline("events")
    project.pipeline("events__replay")
    assert "broken" not in bag(project).dags["events__replay"].tags


def test_a_broken_project_is_an_import_error_that_names_the_line(project: DagProject) -> None:
    (project.root / "include" / "project.yaml").write_text("storage_rot: x\n")
    [text] = bag(project).import_errors.values()
    assert "include/project.yaml:1" in text


def test_a_task_parses_only_its_own_dag(project: DagProject, monkeypatch: pytest.MonkeyPatch) -> None:
    project.pipeline("events")
    project.pipeline("people", "group: both")
    project.pipeline("places", "group: both")
    for dag_id in ("events", "both"):
        monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", dag_id)
        assert list(bag(project).dags) == [dag_id]


def test_parsing_the_examples_imports_neither_spark_nor_great_expectations() -> None:
    program = (
        "import json, runpy, sys; runpy.run_path(sys.argv[1]); "
        "print(json.dumps([m for m in ('pyspark', 'great_expectations', 'delta', 'deltalake', "
        "'confluent_kafka', 'pandas') if m in sys.modules]))"
    )
    command = [sys.executable, "-c", program, str(ROOT / "dags" / "drawdown.py")]
    done = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_a_source_for_tests_is_no_dag_that_anybody_can_start(project: DagProject) -> None:
    folder = project.pipeline("ticking")
    spec = (folder / "pipeline.yaml").read_text()
    start, end = spec.index("    format: json"), spec.index("transform:")
    (folder / "pipeline.yaml").write_text(f"{spec[:start]}    format: rate\n{spec[end:]}")
    dag = only_dag(project, "ticking")
    assert dag.tags == {"drawdown", "broken"}
    assert [task.task_id for task in dag.tasks] == ["broken"]
    assert "spec.test-only" in str(dag.doc_md)
