"""`partitions: day`: a DAG behind a pipeline runs once for each day that the watermark has closed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.api.datamodels._generated import AssetEventResponse, AssetResponse
from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import AssetEventsResult
from airflow.sdk.execution_time.context import InletEventsAccessors, OutletEventAccessors

from dev.airflow.home import LocalAirflow
from drawdown.airflow.factory import build_dags
from drawdown.airflow.schedules import asset_of, asset_of_partitions
from drawdown.airflow.tasks import partitions
from drawdown.airflow.tasks.partitions import PartitionsOperator
from drawdown.errors import SpecError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, BatchStatus, Counts, Verdict
from drawdown.spec import load_pipeline, load_project
from tests.support.airflow_runs import assert_success
from tests.support.asset_events import asset_events
from tests.support.dag_project import ROOT, DagProject
from tests.support.waiting import until

NAME = "visits"
SPEC = """
partitions: {unit}
sources:
  visits:
    format: json
    path: landing/visits
    schema: "id BIGINT, at TIMESTAMP"
    watermark: {{column: at, delay: 1 hour}}
transform: transform.sql
sink: {{format: delta, path: tables/visits, schema: "id BIGINT, at TIMESTAMP"}}
state: {{partitions: 1}}
"""
PER_PUBLISH = """
with DAG("after_every_publish", schedule=[Asset.ref(name="drawdown.visits")]):

    @task
    def look():
        return "looked"

    look()
"""


def visits(project: DagProject, unit: str = "day") -> None:
    folder = project.pipeline(NAME)
    (folder / "pipeline.yaml").write_text(SPEC.format(unit=unit))
    (folder / "transform.sql").write_text("select id, at from visits")


def land(project: DagProject, name: str, *times: str) -> None:
    """One file with a row for each time of 2024."""
    landing = project.storage / "landing" / NAME
    landing.mkdir(parents=True, exist_ok=True)
    rows = [json.dumps({"id": number, "at": f"2024-{at}:00Z"}) for number, at in enumerate(times)]
    (landing / f".{name}").write_text("\n".join(rows))
    (landing / f".{name}").rename(landing / f"{name}.json")


# With a real Airflow


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAirflow]:
    project = DagProject(tmp_path_factory.mktemp("partitions") / "project", retries=0)
    visits(project)
    [per_day] = re.findall(r"```python\n(.*?)```", (ROOT / "docs/assets.md").read_text(), re.DOTALL)
    (project.root / "dags" / "consumers.py").write_text(per_day + PER_PUBLISH)
    with LocalAirflow(project.root, project.root / "airflow") as started:
        for dag_id in (NAME, "visits_of_a_day", "after_every_publish"):
            started.unpause(dag_id)
        yield started


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.capability("SEE-17")
def test_a_daily_dag_runs_once_for_each_complete_day(airflow: LocalAirflow) -> None:
    project = SimpleNamespace(storage=airflow.project_root / "storage")
    land(project, "first", "03-01T10:00", "03-02T03:00")  # type: ignore[arg-type]
    assert drained(airflow)["partitions"] == "success"
    assert days(airflow, 1) == ["2024-03-01"]

    # A late row, and the whole of two days.
    land(project, "second", "03-01T11:00", "03-03T12:00", "03-04T01:30")  # type: ignore[arg-type]
    assert drained(airflow)["partitions"] == "success"
    assert days(airflow, 3) == ["2024-03-01", "2024-03-02", "2024-03-03"]

    land(project, "third", "03-02T05:00", "03-04T02:00")  # type: ignore[arg-type]
    assert drained(airflow) == {
        "preflight": "success",
        "drain": "success",
        "audit": "success",
        "publish": "success",
        "partitions": "skipped",
    }
    until(lambda: len(airflow.runs("after_every_publish")) == 3, 120)
    assert days(airflow, 3) == ["2024-03-01", "2024-03-02", "2024-03-03"], "late rows start no day again"
    [_, second] = events(airflow)
    assert second["extra"]["partitions"] == ["2024-03-02T00:00:00", "2024-03-03T00:00:00"]


def drained(airflow: LocalAirflow) -> dict[str, str | None]:
    run_id = airflow.trigger(NAME)
    assert_success(airflow, NAME, run_id, 400)
    return airflow.task_states(NAME, run_id)


def days(airflow: LocalAirflow, expected: int) -> list[str]:
    """The partition keys of the consumer's runs, once there are as many as expected and all succeeded."""

    def found() -> list[dict[str, Any]] | None:
        runs: list[dict[str, Any]] = airflow.api.call("GET", "dags", "visits_of_a_day", "dagRuns")["dag_runs"]
        ended = [run for run in runs if run["state"] == "success"]
        return ended if len(ended) >= expected else None

    runs = until(found, 240)
    for run in runs:
        assert run["run_type"] == "asset_triggered"
        assert run["partition_date"].startswith(run["partition_key"])
    return sorted(run["partition_key"] for run in runs)


def events(airflow: LocalAirflow) -> list[dict[str, Any]]:
    """One event of each `partitions` task: the events of one task differ in their keys only."""
    found = [each for each in asset_events(airflow) if each["uri"] == "drawdown://visits/days"]
    return list({each["source_run_id"]: each for each in found}.values())


# Without a scheduler: what one task tells


@dataclass
class Told:
    """What Airflow has been told of the asset, and its answers as its execution API gives them."""

    root: Path
    events: list[AssetEventResponse] = field(default_factory=list)

    def send(self, asked: Any) -> AssetEventsResult:
        found = self.events if asked.ascending else self.events[::-1]
        found = [event for event in found if asked.before is None or event.timestamp <= asked.before]
        return AssetEventsResult(asset_events=found[: asked.limit or None])

    def keep(self, key: str | None, extra: dict[str, Any]) -> None:
        at = datetime.now(UTC) + timedelta(milliseconds=len(self.events))
        asset = AssetResponse(name=NAME, uri=f"drawdown://{NAME}/days", group="asset")
        self.events.append(
            AssetEventResponse(
                id=len(self.events),
                timestamp=at,
                extra=extra,
                asset=asset,
                created_dagruns=[],
                partition_key=key,
            )
        )

    def run(self) -> list[str] | None:
        """The keys that the task `partitions` sends; None when it is skipped."""
        task = PartitionsOperator(task_id="partitions", project_root=str(self.root), pipeline=NAME)
        unit = load_pipeline(load_project(self.root), NAME).partitions
        assert unit is not None
        asset, outlets = asset_of_partitions(NAME, unit), OutletEventAccessors()
        context: Any = {"inlet_events": InletEventsAccessors([asset]), "outlet_events": outlets}
        try:
            task.execute(context)
        except AirflowSkipException:
            return None
        keys = sorted(outlets[asset].partition_keys)
        for key in keys:
            self.keep(key, outlets[asset].extra)
        return keys


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    project = DagProject(tmp_path / "project")
    visits(project)
    told = Told(project.root)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", told, raising=False)
    return told


def batch(
    told: Told, number: int, watermark: str, status: BatchStatus = "published", *, stateful: bool = True
) -> None:
    """A batch that ran with this watermark: the next one is recorded with it."""
    with Metastore.open(load_project(told.root).metastore_url) as metastore:
        lease = metastore.acquire(NAME, "here", f"run-{number}", timedelta(minutes=1))
        if metastore.active_checkpoint(NAME) is None:
            operators = ["window"] if stateful else []
            metastore.create_checkpoint(lease, 1, "checkpoints/1", {"state.operators": operators})
        at = datetime.fromisoformat(f"2024-{watermark}:00+00:00")
        metastore.note_batch(
            lease, Batch(NAME, 1, number, f"run-{number}", 0, watermark=at, counts=Counts(staged=1)), [], {}
        )
        if status != "staged":
            metastore.mark_committed(lease, 1, number)
            outcome = "fail" if status == "held" else "pass"
            metastore.record_verdict(lease, Verdict(NAME, 1, f"run-{number}", number, number, outcome))  # type: ignore[arg-type]
        if status == "published":
            metastore.mark_published(lease, 1, [number])
        metastore.release(lease)


def published(told: Told, number: int) -> None:
    with Metastore.open(load_project(told.root).metastore_url) as metastore:
        lease = metastore.acquire(NAME, "here", "released", timedelta(minutes=1))
        metastore.mark_published(lease, 1, [number])
        metastore.release(lease)


@pytest.mark.capability("SEE-17")
def test_a_task_tells_the_days_that_were_closed_since_the_last_event(told: Told) -> None:
    assert told.run() is None, "it has never run"
    batch(told, 0, "03-01T23:00")
    batch(told, 1, "03-05T06:00", "staged")
    assert told.run() == ["2024-03-04T00:00:00"], "the first event has the newest day alone"
    assert told.run() is None, "the task was cleared"
    told.keep(None, {"made": "by a person"})
    assert told.run() is None
    batch(told, 1, "03-05T06:00")
    batch(told, 2, "03-07T00:00", "staged")
    assert told.run() == ["2024-03-05T00:00:00", "2024-03-06T00:00:00"]


@pytest.mark.capability("SEE-17")
def test_a_held_slice_keeps_its_days_open_until_a_decision(told: Told) -> None:
    batch(told, 0, "03-01T00:00")
    batch(told, 1, "03-03T00:00", "held")
    batch(told, 2, "03-09T00:00", "passed")
    batch(told, 3, "03-10T00:00", "staged")
    assert told.run() == ["2024-03-02T00:00:00"]
    published(told, 1)
    published(told, 2)
    assert told.run() == [f"2024-03-0{day}T00:00:00" for day in range(3, 10)]


@pytest.mark.capability("SEE-17")
def test_days_that_a_decision_has_completed_are_told_although_nothing_is_new(told: Told) -> None:
    preflight: Any = build_dags(told.root)[NAME].get_task("preflight")
    assets = [asset_of(NAME), asset_of_partitions(NAME, "day")]
    assert preflight.inlets == assets

    def still_runs() -> set[str]:
        context = {"inlet_events": InletEventsAccessors(assets)}
        return set(preflight._watching(load_project(told.root), context))

    batch(told, 0, "03-01T00:00")
    batch(told, 1, "03-03T00:00", "held")
    batch(told, 2, "03-09T00:00", "staged")
    assert told.run() == ["2024-03-02T00:00:00"]
    assert still_runs() == set()
    published(told, 1)
    assert still_runs() == {"partitions"}


@pytest.mark.capability("SEE-17")
def test_many_partitions_are_told_in_several_runs(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = told.root / "include" / "pipelines" / NAME / "pipeline.yaml"
    spec.write_text(SPEC.format(unit="hour"))
    monkeypatch.setattr(partitions, "AT_MOST", 3)
    batch(told, 0, "03-01T00:00")
    batch(told, 1, "03-01T01:59", "staged")
    assert told.run() == ["2024-03-01T00:00:00"]
    batch(told, 1, "03-01T01:59")
    batch(told, 2, "03-01T05:30", "staged")
    assert told.run() == [f"2024-03-01T0{hour}:00:00" for hour in (1, 2, 3)]
    assert told.run() == ["2024-03-01T04:00:00"]


@pytest.mark.capability("SEE-17")
def test_partitions_without_a_watermark_are_refused(tmp_path: Path) -> None:
    project = DagProject(tmp_path / "project")
    project.pipeline("events", "partitions: day")
    with pytest.raises(SpecError) as caught:
        load_pipeline(load_project(project.root), "events")
    assert caught.value.id == "spec.missing-key"
    assert "watermark" in str(caught.value)
