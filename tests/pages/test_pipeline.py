"""The page of a pipeline: charts of its runs, backlog, expectations, query, spec; rights and hostile text."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, event

from drawdown.observe.lineage.column_lineage import Origin, OutputColumns, keep_columns
from drawdown.spec import load_pipeline, load_project
from drawdown.workspace import Generation, Workspace
from tests.pages.conftest import Ask
from tests.support.fleet_records import FleetRecords
from tests.support.pipeline_history import HOSTILE, history


@pytest.fixture
def client(fleet: FleetRecords, as_reader_of: Ask) -> TestClient:
    history(fleet, "orders")
    fleet.record("orders")
    return as_reader_of("orders")


@pytest.mark.capability("SEE-02")
def test_the_page_charts_what_the_runs_did(client: TestClient) -> None:
    text = client.get("/dags/orders").text
    charts = re.findall(r'aria-label="([^"]*Newest: [^"]*)"', text)
    assert [name.split(",")[0] for name in charts] == [
        "Rows read",
        "Late rows",
        "Backlog of events",
        "Watermark behind the newest event",
        "Watermark behind the end of the run",
        "Seconds by phase",
        "Rows in state",
        "Memory of the state store",
        "Cost of each run",
    ]
    assert "by what became of them" in charts[0]
    assert "fed 90, quarantined 6, malformed 4, too far in the future 0, published 80" in charts[0]
    assert "Newest: behind 10 min" in charts[3]
    assert "start 2 s, open 1 s, query 10 s, audit 3 s, publish 500 ms" in charts[5]
    assert "rows 1.2k" in charts[6]
    assert re.search(r"<title>[^<]* UTC: fed 90, quarantined 6, malformed 4", text), "each bar has a title"


def test_the_backlog_says_how_long_it_takes_at_todays_rate(client: TestClient) -> None:
    [backlog] = client.get("/dags/orders?format=json").json()["backlogs"]
    # Each run read 5 files in 10 s of its query.
    assert (backlog["waiting"], backlog["per_second"], backlog["measured"]) == (30, 0.5, "today")
    assert backlog["seconds_to_empty"] == 60
    assert "0.5 files a second, today" in client.get("/dags/orders").text


def test_expectations_are_a_row_each_with_a_bar_for_each_slice(client: TestClient) -> None:
    first, second = client.get("/dags/orders?format=json").json()["expectations"]
    assert (first["name"], first["failed"], first["judged"]) == (f"enough {HOSTILE}", 1, 3)
    assert [outcome for outcome, _ in first["bars"]] == ["pass", "pass", "fail"]
    assert (second["name"], [outcome for outcome, _ in second["bars"]]) == (
        "no gaps",
        ["empty", "empty", "warn"],
    )


def test_the_query_is_shown_with_its_watermarks_keys_and_state(client: TestClient) -> None:
    text = client.get("/dags/orders").text
    for part in (
        "watermark: at 10 minutes",
        "rows are dropped 600 s before the watermark",
        "left keys: id bigint",
        "rocksdb state in 2 partitions",
        "id bigint, point struct&lt;x:int,y:int&gt;",
    ):
        assert part.lower() in text.lower(), part
    schemas = client.get("/dags/orders?format=json").json()["schemas"]
    assert [(each["generation"], each["added"], each["removed"]) for each in schemas] == [
        (2, ["point struct<x:int,y:int>"], []),
        (1, ["id bigint"], []),
    ]


def test_each_column_of_the_sink_names_the_source_columns_that_it_comes_from(
    fleet: FleetRecords, client: TestClient
) -> None:
    assert "Where the columns come from" not in client.get("/dags/orders").text, "nothing is recorded yet"
    found = OutputColumns(
        {"id": (Origin("events", "id", "identity"), Origin("events", HOSTILE, "conditional"))},
        (Origin("events", "at", "filter"),),
        {"id": "bigint"},
        {"events": {"id": "bigint", "at": "timestamp"}},
    )
    with Workspace.open(load_project(fleet.root)) as workspace:
        spec = load_pipeline(workspace.project, "orders")
        keep_columns(Generation.of(workspace, spec), found)
    columns = client.get("/dags/orders?format=json").json()["columns"]
    assert columns == {
        "columns": [
            {
                "name": "id",
                "type": "bigint",
                "values": ["events.id"],
                "decided_by": [f"events.{HOSTILE} (conditional)"],
            }
        ],
        "rows": ["events.at (filter)"],
    }
    text = client.get("/dags/orders").text
    assert "Where the columns come from" in text
    assert not re.search(r"<script>|<img", text)


def test_the_spec_is_shown_as_written_without_secrets(fleet: FleetRecords, as_reader_of: Ask) -> None:
    fleet.pipeline("plain", "owner: ${OWNER}\n")
    folder = fleet.root / "include/pipelines/plain"
    (folder / "transform.sql").write_text("-- password = hunter2\nSELECT value FROM events")
    text = as_reader_of("plain").get("/dags/plain").text
    assert "SELECT value FROM events" in text
    assert "hunter2" not in text
    assert "Nothing is recorded yet" in text


def test_a_spec_that_does_not_load_is_not_shown_but_its_error_is(
    fleet: FleetRecords, as_reader_of: Ask
) -> None:
    history(fleet, "orders")
    fleet.record("orders")
    spec = fleet.root / "include/pipelines/orders/pipeline.yaml"
    spec.write_text(spec.read_text() + "password: hunter2\n")
    text = as_reader_of("orders").get("/dags/orders").text
    assert "The spec cannot be read" in text
    assert "hunter2" not in text
    assert "Rows read, by what became of them" in text, "what was recorded stays"


def test_the_page_of_a_removed_pipeline_keeps_its_history_and_names_no_other(
    fleet: FleetRecords, as_reader_of: Ask
) -> None:
    fleet.pipeline("orders2_secret")
    history(fleet, "orders2")
    fleet.record("orders2")
    folder = fleet.root / "include/pipelines/orders2"
    folder.rename(fleet.root / "gone")
    text = as_reader_of("orders2").get("/dags/orders2").text
    assert "include/pipelines/orders2 is gone" in text
    assert "orders2_secret" not in text


@pytest.mark.capability("SEE-07")
def test_a_pipeline_is_shown_at_the_dag_that_drains_it_and_at_no_other(
    fleet: FleetRecords, as_reader_of: Ask
) -> None:
    for name in ("north", "south"):
        fleet.pipeline(name, "group: all_of_them\n")
        fleet.ran(name)
    fleet.pipeline("other")
    fleet.ran("other")
    fleet.record("north", "south", "other")
    client = as_reader_of("all_of_them", "north", "north__replay", "drawdown__decide")
    assert "<h1>north</h1>" in client.get("/dags/all_of_them").text
    assert "<h1>south</h1>" in client.get("/dags/all_of_them?pipeline=south").text
    found = client.get("/dags/all_of_them?pipeline=other")
    assert found.status_code == 404
    assert "drains no pipeline" in found.text
    assert "drains no pipeline" in client.get("/dags/north").text, "its DAG is another"
    assert "replays intervals" in client.get("/dags/north__replay").text
    assert "serves all pipelines" in client.get("/dags/drawdown__decide").text
    assert client.get("/dags/..%2F..%2Fother").status_code == 404


@pytest.mark.capability("SEE-09")
def test_hostile_texts_are_text_on_the_page_and_in_its_twin(client: TestClient) -> None:
    text = client.get("/dags/orders").text
    assert "&lt;script&gt;" in text
    assert not re.search(r"<script>|<img", text)
    twin = client.get("/dags/orders?format=json")
    assert twin.headers["content-type"] == "application/json"
    assert twin.headers["x-content-type-options"] == "nosniff"
    assert twin.json()["problem"]["what"] == HOSTILE


def test_the_last_hundred_runs_can_be_asked_for_and_nothing_else(
    fleet: FleetRecords, as_reader_of: Ask
) -> None:
    fleet.pipeline("busy")
    for _ in range(40):
        fleet.ran("busy")
    fleet.record("busy")
    client = as_reader_of("busy")
    assert len(client.get("/dags/busy?format=json").json()["points"]) == 30
    assert len(client.get("/dags/busy?format=json&runs=100").json()["points"]) == 40
    assert len(client.get("/dags/busy?format=json&runs=100000").json()["points"]) == 30


def test_newest_is_last_and_times_are_utc(client: TestClient) -> None:
    points = client.get("/dags/orders?format=json").json()["points"]
    starts = [datetime.fromisoformat(each["started_at"]) for each in points]
    assert starts == sorted(starts)
    assert all(each.utcoffset() == timedelta(0) for each in starts)
    assert datetime.now(UTC) - starts[-1] < timedelta(minutes=5)


def test_the_page_reads_the_metastore_as_often_whatever_the_number_of_runs_and_pipelines(
    fleet: FleetRecords, as_reader_of: Ask
) -> None:
    fleet.pipeline("busy")
    for _ in range(3):
        fleet.ran("busy")
    fleet.record("busy")
    client = as_reader_of("busy")
    few = statements_of(lambda: client.get("/dags/busy"))
    for number in range(60):
        fleet.ran("busy")
        fleet.pipeline(f"other{number}")
    fleet.record(*(f"other{number}" for number in range(60)))
    many = statements_of(lambda: client.get("/dags/busy?runs=100"))
    assert many == few
    assert few < 25


def statements_of(call: Callable[[], object]) -> int:
    """How many SQL statements a call executes."""
    seen = []

    def note(*arguments: object) -> None:
        seen.append(arguments[2])

    event.listen(Engine, "before_cursor_execute", note)
    try:
        call()
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    return len(seen)
