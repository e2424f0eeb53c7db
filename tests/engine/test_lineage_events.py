"""The OpenLineage events of whole runs, sent to a real server and held against the published schemas."""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from drawdown.application import SparkApplication
from drawdown.cli.commands.decisions.decide import release
from drawdown.cli.commands.decisions.rebuild import approve, rollback
from drawdown.errors import AuditFailed
from drawdown.metastore.records import Run
from drawdown.plan.version_in_use import wanted
from drawdown.quarantine.request import ReplayRequest
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.support.lineage_server import LineageServer, check_event, lineage_server
from tests.support.replays import replayed
from tests.support.sandbox import Sandbox
from tests.support.watching import watching

SPEC = """
sources:
  orders:
    format: json
    path: landing/orders
    schema: "id INT, who STRING, amount DOUBLE, at TIMESTAMP"
    watermark: {column: at, delay: 1 hour}
  names: {format: csv, path: names, schema: "who STRING, name STRING", static: true}
transform: transform.sql
sink:
  format: delta
  path: tables/paid
  schema: "id INT, name STRING, price DOUBLE, at TIMESTAMP"
  time_column: at
state: {partitions: 2}
replay: {interval: 1 day}
"""
SQL = """
SELECT o.id, n.name, o.amount * 100 AS price, o.at FROM orders o JOIN names n ON n.who = o.who WHERE o.id > 0
"""
QUALITY = """
rules:
  - {name: known, check: who IS NOT NULL, on_fail: quarantine}
expectations:
  - {name: not_dear, type: expect_column_max_to_be_between, kwargs: {column: price, max_value: 5000}}
"""


@pytest.fixture
def server() -> Iterator[LineageServer]:
    with lineage_server() as found:
        yield found


@pytest.fixture
def shop(sandbox: Sandbox) -> Sandbox:
    (sandbox.storage / "names").mkdir()
    sandbox.land("names/all.csv", ["a,Ada", "b,Bob"])
    sandbox.pipeline("paid", SPEC, transform_sql=SQL, quality_yaml=QUALITY)
    return sandbox


def _send_to(sandbox: Sandbox, lineage: str) -> None:
    path = sandbox.root / "include" / "project.yaml"
    path.write_text(f"{path.read_text()}lineage: {{{lineage}}}\n")


def _arrive(shop: Sandbox, number: int, *rows: tuple[Any, ...]) -> None:
    orders = [
        {"id": id, "who": who, "amount": amount, "at": f"2024-01-{at}:00Z"} for id, who, amount, at in rows
    ]
    shop.land_json(f"landing/orders/{number}.json", orders, mtime=1_700_000_000 + number)


def _application(shop: Sandbox, work: Any) -> Any:
    with shop.metastore() as metastore:
        application = SparkApplication(Workspace(shop.project, metastore), session=shop.spark)
        report = work(application)
    assert report.error is None, report.error
    return report.run


def _told(server: LineageServer) -> list[tuple[str, str]]:
    return [(event["job"]["name"], event["eventType"]) for event in server.events]


def _facets(event: dict[str, Any], name: str, direction: str = "outputs") -> dict[str, Any]:
    """All facets of the dataset whose name ends like this."""
    (found,) = [each for each in event[direction] if each["name"].endswith(name)]
    kinds = ("facets", "inputFacets", "outputFacets")
    return {key: facet for kind in kinds for key, facet in found.get(kind, {}).items()}


@pytest.mark.capability("SEE-13")
def test_the_events_of_drains_a_release_and_a_replay_name_what_became_visible(
    shop: Sandbox, server: LineageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop.root)
    _send_to(shop, f"url: '{server.url}', namespace: shop")
    _arrive(shop, 1, (1, "a", 10.0, "01T10:00"), (2, None, 20.0, "01T11:00"), (3, "b", 30.0, "03T12:00"))
    first = shop.run("paid")
    _arrive(shop, 2, (4, "a", 99.0, "04T10:00"))
    with pytest.raises(AuditFailed):
        shop.run("paid")
    release("paid", why="a test")
    replayed(shop, "2024-01-01", "2024-01-02", "paid")

    checked = set().union(*map(check_event, server.events))
    assert {
        "drawdown_slice", "schema", "columnLineage", "inputStatistics", "outputStatistics", "errorMessage",
        "dataQualityAssertions", "test", "nominalTime", "jobType",
    } <= checked  # fmt: skip
    assert _told(server) == [
        ("paid", "START"), ("paid", "COMPLETE"), ("paid", "START"), ("paid", "FAIL"),
        ("paid.release", "START"), ("paid.release", "COMPLETE"),
        ("paid.replay", "START"), ("paid.replay", "COMPLETE"),
    ]  # fmt: skip
    assert {event["job"]["namespace"] for event in server.events} == {"shop"}
    assert server.paths == {"/api/v1/lineage"}

    begun, done, _, failed, _, released, _, again = server.events
    assert begun["run"]["runId"] == done["run"]["runId"] != failed["run"]["runId"]
    assert begun["outputs"] == []
    assert done["run"]["facets"]["drawdown_slice"]["runId"] == first.run_id

    read = _facets(done, "/landing/orders", "inputs")
    assert (read["inputStatistics"]["rowCount"], read["inputStatistics"]["fileCount"]) == (3, 1)
    assert read["inputStatistics"]["size"] > 0
    (rule,) = read["dataQualityAssertions"]["assertions"]
    assert (rule["name"], rule["success"], rule["actual"]) == ("known", False, "1")
    written = _facets(done, "/tables/paid")
    assert written["outputStatistics"]["rowCount"] == 2
    assert written["outputStatistics"]["fileCount"] >= 1
    assert {f["name"]: f["type"] for f in written["schema"]["fields"]}["price"] == "double"
    price = written["columnLineage"]["fields"]["price"]["inputFields"]
    assert [(f["namespace"], f["name"], f["field"]) for f in price] == [
        ("file", str(shop.storage / "landing/orders"), "amount")
    ]
    assert price[0]["transformations"] == [{"type": "DIRECT", "subtype": "TRANSFORMATION", "masking": False}]
    rows = {(f["name"].rpartition("/")[2], f["field"]) for f in written["columnLineage"]["dataset"]}
    assert rows == {("names", "who"), ("orders", "id"), ("orders", "who")}
    (expected,) = written["dataQualityAssertions"]["assertions"]
    assert (expected["column"], expected["success"]) == ("price", True)
    assert _facets(done, "/quarantine/paid")["outputStatistics"]["rowCount"] == 1

    assert failed["outputs"] == [], "rows that wait are in no output"
    assert failed["run"]["facets"]["test"]["tests"][0]["status"] == "fail"
    assert failed["run"]["facets"]["errorMessage"]["message"].startswith("audit.fail: ")
    assert _facets(released, "/tables/paid")["outputStatistics"]["rowCount"] == 1
    assert _facets(released, "/tables/paid")["columnLineage"]["fields"]["id"]
    assert released["run"]["facets"]["drawdown_slice"]["published"] == [
        {"generation": 1, "firstBatch": 1, "lastBatch": 1}
    ]
    assert again["run"]["facets"]["nominalTime"]["nominalStartTime"].startswith("2024-01-01T00:00")
    assert _facets(again, "/tables/paid")["outputStatistics"]["rowCount"] == 1
    assert "Ada" not in json.dumps(server.events), "no row of the user is in an event"


@pytest.mark.full
@pytest.mark.capability("SEE-13")
def test_the_events_of_a_quarantine_replay_a_rebuild_its_swap_and_the_way_back(
    shop: Sandbox, server: LineageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop.root)
    quality = "rules: [{name: known, check: %s, on_fail: quarantine}]"
    shop.pipeline("paid", SPEC, transform_sql=SQL, quality_yaml=quality % "amount < 15")
    _arrive(shop, 1, (1, "a", 10.0, "01T10:00"), (2, "b", 20.0, "01T11:00"))
    shop.run("paid")
    _send_to(shop, f"url: '{server.url}'")
    shop.pipeline("paid", SPEC, transform_sql=SQL, quality_yaml=quality % "amount < 25")
    _application(shop, lambda app: app.replay_set_aside(load_pipeline(shop.project, "paid"), ReplayRequest()))
    shop.pipeline("paid", SPEC, transform_sql=SQL, quality_yaml="rules: []")
    _application(shop, lambda app: app.rebuild(wanted(shop.project, "paid")))
    approve("paid", why="a test")
    rollback("paid", why="a test")

    assert "lifecycleStateChange" in set().union(*map(check_event, server.events))
    assert _told(server) == [
        (f"paid.{kind}", type)
        for kind in ("quarantine-replay", "rebuild", "rebuild-swap", "rebuild-rollback")
        for type in ("START", "COMPLETE")
    ]
    put_back, rebuilt, swapped, back = server.events[1::2]
    assert _facets(put_back, "/tables/paid")["outputStatistics"]["rowCount"] == 1
    assert rebuilt["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 2
    shadow = rebuilt["outputs"][0]["name"]
    assert shadow != str(shop.storage / "tables/paid"), "readers see nothing of a rebuild before its swap"
    assert [each["name"] for each in swapped["inputs"]] == [shadow]
    for event in (swapped, back):
        assert event["outputs"][0]["name"] == str(shop.storage / "tables/paid")
        assert _facets(event, "paid")["lifecycleStateChange"]["lifecycleStateChange"] == "OVERWRITE"


def test_without_a_destination_nothing_is_sent_and_columns_are_kept(shop: Sandbox) -> None:
    _arrive(shop, 1, (1, "a", 10.0, "01T10:00"))
    shop.run("paid")
    assert not (shop.root / ".drawdown" / "lineage").exists()
    kept = json.loads(shop.read("_drawdown/paid/lineage-1/columns.json"))
    assert [each["name"] for each in kept["columns"]] == ["id", "name", "price", "at"]


def test_a_watch_names_its_datasets_while_it_runs_and_its_counts_at_its_end(
    shop: Sandbox, server: LineageServer
) -> None:
    _send_to(shop, f"url: '{server.url}'")
    with watching(shop, "paid") as watched:
        _arrive(shop, 1, (1, "a", 10.0, "01T10:00"))
        _until(lambda: len(server.events) == 2, seconds=90)
        _arrive(shop, 2, (2, "b", 10.0, "01T11:00"))
        watched.until(lambda: watched.published == 2)
    _until(lambda: len(server.events) == 3)
    assert _told(server) == [("paid.watch", each) for each in ("START", "RUNNING", "COMPLETE")]
    for event in server.events:
        check_event(event)
    _, running, done = server.events
    assert running["run"]["runId"] == done["run"]["runId"]
    about = _facets(running, "/tables/paid")
    assert set(about) == {"schema", "columnLineage"}, "it has counted nothing yet"
    assert about["columnLineage"] == _facets(done, "/tables/paid")["columnLineage"]
    assert set(_facets(running, "/landing/orders", "inputs")) == {"schema"}
    assert _facets(done, "/tables/paid")["outputStatistics"]["rowCount"] == 2


def test_events_go_to_a_file(shop: Sandbox) -> None:
    _send_to(shop, "file: lineage/events.jsonl")
    _arrive(shop, 1, (1, "a", 10.0, "01T10:00"))
    shop.run("paid")
    events = [json.loads(line) for line in (shop.root / "lineage" / "events.jsonl").read_text().splitlines()]
    assert [each["eventType"] for each in events] == ["START", "COMPLETE"]
    assert {each["job"]["namespace"] for each in events} == {"drawdown"}
    for event in events:
        check_event(event)


def test_the_standard_environment_says_where_events_go_and_who_is_their_parent(
    shop: Sandbox, server: LineageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = "dbt/nightly/018f3173-7000-7e3b-b649-2ed975a17905"
    for name, value in {"URL": server.url, "API_KEY": "k", "NAMESPACE": "n", "PARENT_ID": parent}.items():
        monkeypatch.setenv(f"OPENLINEAGE_{name}", value)
    # The client derives further variables from these.
    before = set(os.environ)
    try:
        _arrive(shop, 1, (1, "a", 10.0, "01T10:00"))
        shop.run("paid")
    finally:
        for name in set(os.environ) - before:
            del os.environ[name]
    assert server.keys == {"Bearer k"}
    for event in server.events:
        assert event["job"]["namespace"] == "n"
        assert event["run"]["facets"]["parent"]["job"]["name"] == "nightly"


def test_a_server_that_hangs_costs_the_end_of_a_run_a_second_and_the_next_run_sends(
    shop: Sandbox, server: LineageServer, caplog: pytest.LogCaptureFixture
) -> None:
    _arrive(shop, 1, (1, "a", 10.0, "01T10:00"))
    shop.run("paid")
    _send_to(shop, f"url: '{server.url}'")
    server.hangs = True
    _arrive(shop, 2, (2, "b", 10.0, "01T11:00"))
    began = time.monotonic()
    with caplog.at_level(logging.WARNING):
        run = shop.run("paid")
    took = time.monotonic() - began
    assert run.ended_at is not None
    assert run.started_at is not None
    took_itself = (run.ended_at - run.started_at).total_seconds()
    assert run.state == "succeeded"
    assert took - took_itself < 3, "planning and the one second beside the run itself"
    (line,) = [each.getMessage() for each in caplog.records if each.name.startswith("drawdown.observe")]
    # On a busy machine the first request has timed out before the run ends.
    assert re.match(f"lineage: {server.url} (does not answer; 2 events|did not take an event)", line)
    assert shop.delta("tables/paid")[-1][0] == 2

    server.hangs = False
    server.ends.set()
    _arrive(shop, 3, (3, "b", 10.0, "01T12:00"))
    shop.run("paid")
    _until(lambda: len(server.events) == 4)
    assert [each["eventType"] for each in server.events] == ["START", "COMPLETE"] * 2
    assert server.events[0]["run"]["facets"]["drawdown_slice"]["runId"] == run.run_id


def test_a_server_that_answers_500_costs_one_line(
    shop: Sandbox, server: LineageServer, caplog: pytest.LogCaptureFixture
) -> None:
    _send_to(shop, f"url: '{server.url}'")
    server.status = 500
    _arrive(shop, 1, (1, "a", 10.0, "01T10:00"))
    with caplog.at_level(logging.WARNING):
        assert shop.run("paid").state == "succeeded"
    (line,) = [each.getMessage() for each in caplog.records if each.name.startswith("drawdown.observe")]
    assert line.startswith(f"lineage: {server.url} did not take an event (500)")
    assert len(list((shop.root / ".drawdown" / "lineage").glob("*.json"))) == 2

    server.status = 422
    caplog.clear()
    _arrive(shop, 2, (2, "a", 10.0, "01T11:00"))
    shop.run("paid")
    _until(lambda: not list((shop.root / ".drawdown" / "lineage").glob("*.json")))
    assert "which was dropped" in caplog.text, "an event that is called wrong does not block the rest"


def test_a_run_that_was_killed_is_aborted_by_the_next(shop: Sandbox, server: LineageServer) -> None:
    _send_to(shop, f"url: '{server.url}'")
    with shop.metastore() as metastore:
        metastore.start_run(Run("20240101T000000000-dead", "paid"))
        metastore.release(metastore.acquire("paid", "gone", "20240101T000000000-dead", timedelta(seconds=5)))
    _arrive(shop, 1, (1, "a", 10.0, "01T10:00"))
    shop.run("paid")
    assert [each["eventType"] for each in server.of("paid")] == ["START", "ABORT", "COMPLETE"]
    check_event(server.of("paid", "ABORT")[0])


def test_hostile_names_and_texts_are_only_text_and_no_password_is_sent(
    shop: Sandbox, server: LineageServer
) -> None:
    _send_to(shop, f"url: '{server.url}'")
    odd = "<script>alert('ü\u2028')</script> \\"
    quality = f"""
        expectations:
          - name: {json.dumps(odd)}
            type: expect_column_values_to_not_be_null
            kwargs: {{column: name}}
    """
    shop.pipeline("paid", SPEC, transform_sql=SQL, quality_yaml=quality)
    _arrive(shop, 1, (1, "a", 10.0, "01T10:00"))
    shop.run("paid")
    raised = "SELECT id, raise_error('<b> password=hunter2') AS name, amount AS price, at FROM orders"
    shop.pipeline("paid", SPEC, transform_sql=f"{raised}, names", quality_yaml=quality)
    _arrive(shop, 2, (2, "a", 10.0, "01T11:00"))
    assert shop.drain("paid")[0].error is not None

    for event in server.events:
        check_event(event)
    _, done, _, failed = server.events
    assert done["run"]["facets"]["test"]["tests"][0]["name"] == odd
    assert failed["eventType"] == "FAIL"
    assert "hunter2" not in json.dumps(server.events)


def _until(holds: Any, seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    assert holds()
