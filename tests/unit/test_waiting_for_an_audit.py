"""An audit waits for that of another pipeline of its group: that is said, and is not being stuck."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drawdown.application import SparkApplication
from drawdown.application.scheduler import PipelineTask
from drawdown.application.watcher import Watcher
from drawdown.errors import BusyError
from drawdown.quality import audit
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox

SPEC = """
sources: {events: {format: json, path: landing/events, schema: id.ddl}}
sink: {format: delta, path: tables/second, schema: id.ddl}
drain: {stuck_after: 200 milliseconds}
"""
PATIENCE = 20.0


class Noting(Watcher):
    def __init__(self) -> None:
        self.said: list[str] = []

    def notice(self, pipeline: Pipeline, sentence: str) -> None:
        self.said.append(f"{pipeline.name}: {sentence}")


class Second:
    """A turn whose audit comes while that of `first` goes on."""

    def __init__(self, application: SparkApplication, turn: PipelineTask) -> None:
        self.application, self.turn = application, turn
        self.said: list[str] = []
        application.watcher = watcher = Noting()
        self.notices = watcher.said
        self.thread = threading.Thread(target=self._audits)
        self.thread.start()
        end = time.monotonic() + PATIENCE
        while not self.notices and time.monotonic() < end:
            time.sleep(0.01)

    def _audits(self) -> None:
        try:
            with audit._alone(self.turn.pipeline.name, self.application._auditor(self.turn).waits):
                self.said.append("audited")
        except BusyError as error:
            self.said.append(error.id)


@pytest.fixture
def first_ends() -> Iterator[threading.Event]:
    began, ends = threading.Event(), threading.Event()

    def audits() -> None:
        with audit._alone("first", audit._patiently):
            began.set()
            ends.wait(PATIENCE)

    thread = threading.Thread(target=audits)
    thread.start()
    assert began.wait(PATIENCE)
    yield ends
    ends.set()
    thread.join()


@pytest.fixture
def second(tmp_path: Path, first_ends: threading.Event) -> Iterator[Second]:
    sandbox = Sandbox(tmp_path)
    pipeline = sandbox.pipeline("second", SPEC, transform_sql="SELECT 1", id_ddl="id INT")
    with sandbox.metastore() as metastore:
        yield Second(SparkApplication(Workspace(sandbox.project, metastore)), PipelineTask(pipeline, "run-2"))


def test_who_waits_for_the_audit_of_another_is_not_stuck_and_says_so(
    second: Second, first_ends: threading.Event
) -> None:
    time.sleep(0.5)  # longer than it may be silent
    assert not second.turn.is_stuck(lambda turn: None)
    assert second.notices == ["second: waits for the audit of first"]
    first_ends.set()
    second.thread.join(PATIENCE)
    assert second.said == ["audited"]


def test_who_waits_for_an_audit_that_was_left_behind_is_told(second: Second) -> None:
    second.application.left_behind.append("first")
    second.thread.join(PATIENCE)
    assert second.said == ["audit.blocked"]
    assert not second.turn._waits
