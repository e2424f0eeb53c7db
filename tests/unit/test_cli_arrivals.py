"""What `drawdown test` cannot bring to a source, or read back from a sink, it says before Spark works."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from drawdown.errors import DrawdownError, SourceError, SpecError
from drawdown.testing.cases import arrivals
from drawdown.testing.cases.arrivals import Arrivals
from drawdown.testing.cases.case import Case, load_cases
from drawdown.testing.cases.case_rows import difference
from drawdown.testing.cases.crash import crash_cases
from drawdown.testing.cases.outputs import sink_rows
from tests.support.spec_folders import PROJECT, SpecFolders

SPARK = None
"""Nothing here comes to it."""

KAFKA = """
sources: {departures: {format: kafka, value: string, options: {subscribe: departures}}}
transform: transform.sql
sink: {format: delta, path: tables/hourly, schema: schemas/hourly.ddl}
"""
KAFKA_SOURCE = "format: kafka, value: string, options: {subscribe: departures}"
DELTA_SINK = "{format: delta, path: tables/hourly, schema: schemas/hourly.ddl}"


@pytest.fixture
def folders(tmp_path: Path) -> SpecFolders:
    folders = SpecFolders(tmp_path, PROJECT.replace("localhost:9092", "127.0.0.1:1"))
    (folders.add() / "tests" / "first").mkdir(parents=True)
    return folders


def case(folders: SpecFolders, pipeline: str, text: str = "waves: [{}]\n") -> Case:
    folder = folders.root / "include/pipelines/hourly"
    (folder / "pipeline.yaml").write_text(pipeline)
    (folder / "tests/first/case.yaml").write_text(text)
    (folder / "tests/first/w.jsonl").write_text("{}\n\n{}\n")
    for expected in ("csv", "jsonl"):
        (folder / f"tests/first/wave1.expected.{expected}").write_text("{}\n")
    [found] = load_cases(folders.load())
    return found


def test_a_broker_that_does_not_answer(folders: SpecFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "_PATIENCE_SECONDS", 0.2)
    to = Arrivals(SPARK, folders.project, case(folders, KAFKA, "waves: [{departures: [w.jsonl]}]\n"))
    for call in (to.prepare, lambda: to.deliver(to.case.spec.waves[0], 1)):
        with pytest.raises(SourceError) as caught:
            call()
        assert (caught.value.id, caught.value.where) == ("test.broker", "127.0.0.1:1")


def test_topics_by_a_pattern(folders: SpecFolders) -> None:
    found = case(folders, KAFKA.replace("subscribe: departures", "subscribePattern: dep.*"))
    with pytest.raises(SpecError, match="'departures' reads topics by a pattern") as caught:
        Arrivals(SPARK, folders.project, found).prepare()
    assert caught.value.id == "test.topic"


def test_a_table_of_columns_that_nobody_declares(folders: SpecFolders) -> None:
    delta = KAFKA.replace(KAFKA_SOURCE, "format: delta, path: tables/of")
    with pytest.raises(SpecError, match="no pipeline writes tables/of") as caught:
        Arrivals(SPARK, folders.project, case(folders, delta)).prepare()
    assert caught.value.id == "test.no-schema"
    assert "schemas: {departures: departures.ddl}" in caught.value.do
    assert not (folders.root / "storage").exists()


@pytest.mark.parametrize(
    ("sink", "what"),
    [("{format: console}", "console sink"), ("{format: kafka, topic: null}", "the rows name their topics")],
)
def test_a_sink_that_cannot_be_read_back(folders: SpecFolders, sink: str, what: str) -> None:
    found = case(folders, KAFKA.replace(DELTA_SINK, sink))
    with pytest.raises(SpecError, match=what) as caught:
        sink_rows(SPARK, folders.project, found.pipeline, datetime.now(UTC))
    assert caught.value.id == "test.unreadable-sink"


def test_a_kill_takes_rows_in_memory_along(folders: SpecFolders) -> None:
    found = case(folders, KAFKA.replace(DELTA_SINK, "{format: memory}"))
    begun: list[str] = []
    with pytest.raises(SpecError, match="hourly writes to memory") as caught:
        next(crash_cases(folders.project, [found], ["before plan"], begun.append, threading.Event()))
    assert (caught.value.id, begun) == ("test.memory", [])


@pytest.mark.parametrize("line", ["[1, 2]", "origin,hour"])
def test_expected_rows_that_are_no_json_objects(tmp_path: Path, line: str) -> None:
    (tmp_path / "wave1.expected.jsonl").write_text(f'{{"origin": "JFK"}}\n\n{line}\n')
    with pytest.raises(DrawdownError) as caught:
        difference("output", None, tmp_path / "wave1.expected.jsonl")
    assert caught.value.id == "test.not-json"
    assert caught.value.where == f"{tmp_path}/wave1.expected.jsonl:3"
