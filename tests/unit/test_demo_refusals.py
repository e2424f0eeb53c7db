"""The demo's line when it does not go as it should, beside an Airflow that is a small web server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from dev.airflow.home import LocalAirflow
from dev.demo import delivery, line
from dev.demo.data import Day, Message
from dev.demo.delivery import Delivery
from dev.demo.line import DagRun, Line
from drawdown.errors import BusyError, MachineError, SourceError

LOG = ["::group::Log message source details", "Traceback", "ValueError: no such gate"]


class Answers(BaseHTTPRequestHandler):
    """An Airflow in which one task of each run is running, forever."""

    def do_GET(self) -> None:
        self._say(
            {"content": LOG}
            if "/logs/" in self.path
            else {"task_instances": [{"task_id": "drain", "state": "running"}]}
            if "/taskInstances" in self.path
            else {"state": "running"}
        )

    def do_POST(self) -> None:
        self._say({"access_token": "t", "dag_run_id": "manual__1"})

    def _say(self, answer: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the screen."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def running(tmp_path: Path, port: int) -> Iterator[Line]:
    with Line(tmp_path, tmp_path / "demo") as running:
        running.airflow = LocalAirflow(tmp_path, tmp_path / "demo" / "airflow", port)
        yield running


def test_a_run_that_does_not_end_names_the_tasks_that_still_run(
    running: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "_RUN_SECONDS", 0.0)
    with pytest.raises(MachineError, match="manual__1 has not ended after 0 s, at drain") as caught:
        running.run()
    assert caught.value.id == "demo.too-slow"


def test_a_failed_run_is_shown_with_the_last_words_of_its_task(running: Line) -> None:
    error = running.failure(DagRun("manual__1", "failed", {"drain": "failed", "audit": "success"}, 1.0, {}))
    assert error.id == "demo.run-failed"
    assert error.what.splitlines() == ["run manual__1 of nycflights failed: drain", *LOG[1:]]


def test_a_second_demo_leaves_the_first_one_alone(running: Line) -> None:
    (running.home / "here").touch()
    with pytest.raises(BusyError) as caught:
        Line(running.root, running.home).__enter__()
    assert caught.value.id == "demo.running"
    assert (running.home / "here").exists()


def test_messages_that_no_broker_takes_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_PATIENCE_SECONDS", 0.2)
    to = Delivery(tmp_path / "storage", "127.0.0.1:1", tmp_path / "copy")
    with pytest.raises(SourceError, match="the topic weather could not be created") as caught:
        to.prepare()
    assert caught.value.id == "demo.broker-refused"
    with pytest.raises(SourceError, match="2 of 2 messages were not taken") as caught:
        to.deliver(Day(1, date(2013, 1, 1), (), (Message("a", "{}"), Message("b", "{}"))))
    assert caught.value.id == "demo.broker-refused"
