"""What an asset is told: each slice that became visible, once, whatever died or was retried or cleared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.api.datamodels._generated import AssetEventResponse, AssetResponse
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import AssetEventsResult
from airflow.sdk.execution_time.context import (
    InletEventsAccessor,
    InletEventsAccessors,
    OutletEventAccessors,
)
from sqlalchemy import create_engine

from drawdown.airflow.run_records import runs_of, runs_of_dag_run, verdict_of
from drawdown.airflow.schedules import asset_of
from drawdown.airflow.tasks.asset_events import is_reported
from drawdown.airflow.tasks.audit_and_publish import AuditOperator, PublishOperator
from drawdown.application import NOTHING_NEW
from drawdown.cli.commands.runs import runs as show_runs
from drawdown.held.decide import decided_text, decision_about
from drawdown.metastore import Metastore
from drawdown.metastore.operations import runs
from drawdown.metastore.records import Batch, Counts, Lease, Outcome, Run, Verdict
from drawdown.spec import load_project
from tests.support.dag_project import DagProject

NAME, TTL = "events", timedelta(minutes=1)


@pytest.fixture
def project(tmp_path: Path) -> DagProject:
    return DagProject(tmp_path / "project")


@pytest.fixture
def metastore(project: DagProject) -> Iterator[Metastore]:
    with Metastore.open(load_project(project.root).metastore_url) as metastore:
        lease = metastore.acquire(NAME, "here", "the-first", TTL)
        metastore.create_checkpoint(lease, 1, "checkpoints/1", {})
        metastore.release(lease)
        yield metastore


@dataclass
class Asset:
    """What Airflow has been told, and its answers as its execution API gives them."""

    root: Path
    events: list[AssetEventResponse] = field(default_factory=list)

    def tell(self, extra: dict[str, Any]) -> None:
        at = datetime.now(UTC) + timedelta(milliseconds=len(self.events))
        asset = AssetResponse(name=NAME, uri=f"drawdown://{NAME}", group="asset")
        event = AssetEventResponse(
            id=len(self.events), timestamp=at, extra=extra, asset=asset, created_dagruns=[]
        )
        self.events.append(event)

    def send(self, asked: Any) -> AssetEventsResult:
        found = [
            event
            for event in self.events
            if (asked.after is None or event.timestamp >= asked.after)
            and (asked.before is None or event.timestamp <= asked.before)
        ]
        found = found if asked.ascending else found[::-1]
        return AssetEventsResult(asset_events=found[: asked.limit or None])

    @property
    def inlet(self) -> InletEventsAccessor:
        return InletEventsAccessor(asset_name=NAME, asset_uri=f"drawdown://{NAME}")


@pytest.fixture
def asset(monkeypatch: pytest.MonkeyPatch, project: DagProject) -> Asset:
    asset = Asset(project.root)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", asset, raising=False)
    return asset


@dataclass
class Drain:
    """One try of a drain, by the steps that are durable."""

    metastore: Metastore
    run_id: str
    dag_run_id: str
    kind: str = "drain"
    lease: Lease = field(init=False)

    def __post_init__(self) -> None:
        self.lease = self.metastore.acquire(NAME, "here", self.run_id, TTL)
        origin = {"dag_id": NAME, "dag_run_id": self.dag_run_id}
        self.metastore.start_run(Run(self.run_id, NAME, kind=self.kind, origin=origin))

    def audit(self, *ids: int, outcome: Outcome = "pass") -> None:
        for batch_id in ids:
            batch = Batch(
                NAME, 1, batch_id, self.run_id, 0, [batch_id], [batch_id + 1], counts=Counts(staged=1)
            )
            self.metastore.note_batch(self.lease, batch, [], {})
        self.metastore.mark_committed(self.lease, 1, ids[-1])
        of = NAME, 1, self.run_id, ids[0], ids[-1]
        self.metastore.record_verdict(self.lease, Verdict(*of, outcome, text="as it was judged"))

    def publish(self, *ids: int) -> None:
        self.metastore.mark_published(self.lease, 1, ids)

    def end(self, state: Any = "succeeded", **values: Any) -> None:
        self.metastore.finish_run(self.run_id, state, **values)
        self.metastore.release(self.lease)


def told(asset: Asset, dag_run_id: str) -> tuple[list[int], int] | None:
    """Batch ids and rows of the event that `publish` of a DAG run sends; None when it sends none."""
    publish = PublishOperator(task_id="publish", project_root=str(asset.root), pipeline=NAME)
    outlets, to = OutletEventAccessors(), asset_of(NAME)
    context: Any = {
        "ti": SimpleNamespace(dag_id=NAME, run_id=dag_run_id),
        "inlet_events": InletEventsAccessors([to]),
        "outlet_events": outlets,
    }
    try:
        publish.execute(context)
    except AirflowSkipException:
        return None
    event = outlets[to].extra
    asset.tell(event)
    return event["batch_ids"], event["rows"]


def test_a_retry_tells_what_the_first_try_had_audited(metastore: Metastore, asset: Asset) -> None:
    first = Drain(metastore, "a", "day-1")
    first.audit(0, 1)
    first.end("crashed")
    second = Drain(metastore, "b", "day-1")
    second.publish(0, 1)
    second.end()
    tries = runs_of(metastore, NAME, NAME, "day-1")
    assert [run.run_id for run in tries] == ["b", "a"]
    verdict = verdict_of(metastore, tries)
    assert verdict is not None
    assert verdict.run_id == "a", "the last try has judged nothing"
    assert told(asset, "day-1") == ([0, 1], 2)
    assert told(asset, "day-1") is None, "`publish` was cleared"


def test_two_tries_that_both_published_are_told_together(metastore: Metastore, asset: Asset) -> None:
    first = Drain(metastore, "a", "day-1")
    first.audit(0)
    first.publish(0)
    first.end("failed")
    second = Drain(metastore, "b", "day-1")
    second.audit(1)
    second.publish(1)
    second.end()
    assert told(asset, "day-1") == ([0, 1], 2)


def test_what_a_dag_run_did_not_come_to_tell_the_next_one_tells(metastore: Metastore, asset: Asset) -> None:
    for number, state in enumerate(("stopped", "failed", "succeeded")):
        # Stopped; failed although its rows are visible; `publish` marked by hand, which sends no event.
        drain = Drain(metastore, f"run-{number}", f"day-{number}")
        drain.audit(number)
        drain.publish(number)
        drain.end(state)
    dead = Drain(metastore, "run-3", "day-3")
    dead.audit(3)
    dead.publish(3)
    assert told(asset, "day-2") == ([0, 2], 3), "run-3 holds its lease: it goes on"
    metastore.release(dead.lease)
    assert told(asset, "day-3") == ([3, 3], 1), "its driver died"
    assert told(asset, "day-2") is None, "its `publish` was cleared"


def test_other_events_are_passed_over_however_many_there_are(metastore: Metastore, asset: Asset) -> None:
    drain = Drain(metastore, "a", "day-1")
    drain.audit(0)
    drain.publish(0)
    drain.end()
    assert told(asset, "day-1") == ([0, 0], 1)
    for number in range(120):
        asset.tell({"run_id": f"replay-{number}", "replayed": ["2024-01-01", "2024-01-02"]})
    asset.tell({"run_id": "released", "batch_ids": [0, 0], "decision": "release"})
    asset.tell({})
    assert told(asset, "day-1") is None


def test_what_a_decision_made_visible_is_told_by_the_decision(metastore: Metastore, asset: Asset) -> None:
    drain = Drain(metastore, "a", "day-1")
    drain.audit(0, 1)
    drain.end()
    lease = metastore.acquire(NAME, "here", "released", TTL)
    decided = metastore.start_run(Run("released", NAME, kind="release", origin={"slices": ["a.0"]}))
    metastore.mark_published(lease, 1, [0, 1])
    metastore.finish_run("released", "succeeded")
    metastore.release(lease)
    assert told(asset, "day-1") is None
    assert not is_reported(decided, asset.inlet)
    asset.tell({"run_id": "released", "batch_ids": [0, 1], "decision": "release"})
    assert is_reported(decided, asset.inlet), "`decide` was cleared"


def test_what_a_rebuild_drained_is_told_by_the_swap(metastore: Metastore, asset: Asset) -> None:
    drain = Drain(metastore, "a", "day-1", kind="rebuild")
    drain.audit(0)
    drain.publish(0)
    drain.end()
    assert told(asset, "day-1") is None


def test_what_was_rewound_with_the_sink_is_not_told(metastore: Metastore, asset: Asset) -> None:
    drain = Drain(metastore, "a", "day-1")
    drain.audit(0, 1)
    drain.publish(0, 1)
    metastore.forget_batches(drain.lease, 1, 0)
    drain.end()
    assert told(asset, "day-1") == ([0, 0], 1)


def test_a_dag_run_is_found_behind_a_thousand_later_ones(metastore: Metastore, project: DagProject) -> None:
    first = Drain(metastore, "a", "day%_1")
    first.audit(0)
    first.end()
    idle = Drain(metastore, "b", "day%_1")
    idle.end(stop_reason=NOTHING_NEW)
    lease = metastore.acquire(NAME, "here", "decided", TTL)
    origin = {"slices": ["a.0"], "by": "ada", "why": "known"}
    metastore.start_run(Run("decided", NAME, kind="release", origin=origin))
    metastore.finish_run("decided", "succeeded")
    metastore.release(lease)
    with create_engine(f"sqlite:///{project.root}/metastore.db").begin() as conn:
        for number in range(1_010):
            later = {"dag_id": NAME, "dag_run_id": f"day-1-{number}"}
            runs.start(conn, Run(f"later-{number}", NAME, origin=later))
    assert [run.run_id for run in runs_of(metastore, NAME, NAME, "day%_1")] == ["a"]
    assert [run.run_id for run in runs_of_dag_run(metastore, NAME, "day%_1")] == ["b", "a"]
    verdict = verdict_of(metastore, runs_of(metastore, NAME, NAME, "day%_1"))
    assert verdict is not None
    assert verdict.run_id == "a"
    decision = decision_about(metastore, NAME, "a.0")
    assert decision is not None
    assert decision.run_id == "decided"
    assert "was released by ada" in decided_text(metastore, NAME, "a.0")


def test_an_audit_that_a_dead_try_failed_is_not_passed_by_the_next(metastore: Metastore) -> None:
    first = Drain(metastore, "a", "day-1")
    first.audit(0, outcome="fail")
    first.end("crashed")
    second = Drain(metastore, "b", "day-1")
    second.end()
    audit = AuditOperator(task_id="audit", project_root="", pipeline=NAME)
    with pytest.raises(AirflowFailException, match="as it was judged"):
        audit.report({}, metastore, runs_of(metastore, NAME, NAME, "day-1"))


def test_the_command_shows_the_verdict_of_an_old_run(
    metastore: Metastore,
    project: DagProject,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number in range(55):
        drain = Drain(metastore, f"run-{number}", f"day-{number}")
        drain.audit(number)
        drain.end()
    monkeypatch.chdir(project.root)
    show_runs(run_id="run-0", as_json=True)
    [verdict] = json.loads(capsys.readouterr().out)["data"]["verdicts"]
    assert verdict["text"] == "as it was judged"
