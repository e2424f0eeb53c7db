"""The page of a DAG run: tries, batches with their offsets, the balance, verdicts, what to do, Data Docs."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from drawdown.airflow.pages.frame import coded
from drawdown.metastore.records import Counts, Verdict
from drawdown.observe.run_batches import offset_text
from drawdown.quality.data_docs import write_docs
from drawdown.spec import load_project
from drawdown.workspace import Workspace
from tests.pages.conftest import Ask
from tests.support.fleet_records import FleetRecords
from tests.support.pipeline_history import HOSTILE, history

HELD = f"/runs/orders/{quote('scheduled__2026-01-31T02:00:00+00:00', safe='')}"


@pytest.fixture
def client(fleet: FleetRecords, as_reader_of: Ask) -> TestClient:
    history(fleet, "orders")
    return as_reader_of("orders", "orders__replay")


@pytest.mark.capability("SEE-03")
def test_the_page_says_what_each_batch_read_and_what_became_of_it(client: TestClient) -> None:
    text = client.get(HELD).text
    assert "100 read = 4 malformed + 0 too far in the future + 6 quarantined + 90 fed: " in text
    assert "adds up" in text
    assert "does not add up" not in text
    assert re.search(r'aria-label="Timeline of 1 batches of orders: batch 2: 100 rows in 1.5 s', text)
    [run] = client.get(f"{HELD}?format=json").json()["details"]
    [batch] = run["batches"]
    assert (batch["batch_id"], batch["seconds"], batch["status"]) == (2, 1.5, "held")
    assert batch["reads"] == [
        {
            "source": "events",
            "before": "log entry 1",
            "after": "log entry 2",
            "rows": 100,
            "files": 5,
            "bytes": 5000,
            "names": ["landing/1.json", HOSTILE],
        }
    ]
    assert "<li><code>landing/1.json</code></li>" in text
    assert "<li>and 3 more</li>" in text
    assert "log entry 1 → log entry 2" in text
    assert "start 2.0 s · open 1.0 s · query 10.0 s · audit 3.0 s · publish 0.5 s" in text


@pytest.mark.capability("SEE-03")
def test_a_held_run_shows_its_verdict_and_leads_to_the_decision_and_the_log(client: TestClient) -> None:
    text = client.get(HELD).text
    assert "80 rows (batch 2)" in text
    assert "/dags/drawdown__decide/runs/held__orders__orders-2.2/tasks/choose/required_actions" in text
    assert "drawdown release orders --why" in text
    assert "3 unexpected (3.75 % of the values that are not null)" in text
    assert re.search(r'class="out" href="/dags/orders/runs/[^"]*/tasks/drain">Log of try 1', text)
    assert "<strong>What to do:</strong> decide" in text
    assert f"/drawdown/data-docs/orders/orders/{'orders-2_0000000002_fail.html'}" in text


def test_counts_that_do_not_add_up_are_said_so(fleet: FleetRecords, as_reader_of: Ask) -> None:
    fleet.pipeline("odd")
    fleet.ran("odd", origin={"dag_id": "odd", "dag_run_id": "r"}, counts=Counts(read=10, fed=9))
    assert "does not add up" in as_reader_of("odd").get("/runs/odd/r").text


def test_each_try_is_a_run_and_a_dag_run_without_one_says_so(fleet: FleetRecords, as_reader_of: Ask) -> None:
    fleet.pipeline("tried")
    for number in (1, 2):
        origin = {"dag_id": "tried", "dag_run_id": "r", "task_id": "drain", "try_number": number}
        fleet.ran("tried", "failed" if number == 1 else "succeeded", origin=origin)
    client = as_reader_of("tried")
    found = client.get("/runs/tried/r?format=json").json()
    assert [(row["attempt"], row["state"]) for row in found["rows"]] == [(2, "succeeded"), (1, "failed")]
    assert "No pipeline was drained" in client.get("/runs/tried/other").text


def test_of_a_large_group_those_to_look_at_are_shown_in_detail(
    fleet: FleetRecords, as_reader_of: Ask
) -> None:
    for number in range(12):
        name = f"member{number:02d}"
        fleet.pipeline(name, "group: many\n")
        state = "failed" if number == 11 else "succeeded"
        fleet.ran(name, state, origin={"dag_id": "many", "dag_run_id": "r"})
    client = as_reader_of("many")
    found = client.get("/runs/many/r?format=json").json()
    assert len(found["rows"]) == 12
    assert len(found["details"]) == 8
    assert "member11" in [run["pipeline"] for run in found["details"]]
    assert "4 more runs ended well" in client.get("/runs/many/r").text
    [one] = client.get("/runs/many/r?format=json&pipeline=member03").json()["details"]
    assert one["pipeline"] == "member03"


@pytest.mark.capability("SEE-09")
def test_hostile_texts_are_text_on_the_page_and_in_its_twin(client: TestClient) -> None:
    text = client.get(HELD).text
    assert text.count("&lt;script&gt;") > 5
    assert not re.search(r"<script>|<img", text)
    [run] = client.get(f"{HELD}?format=json").json()["details"]
    assert run["error"]["what"] == HOSTILE
    odd = client.get(f"/runs/orders/{quote(HOSTILE, safe='')}").text
    assert not re.search(r"<script>|<img", odd), "the id of a run is a text of whoever triggers it"


@pytest.mark.capability("SEE-07")
def test_only_readers_of_the_dag_see_its_runs_and_data_docs(client: TestClient, as_reader_of: Ask) -> None:
    stranger = as_reader_of("other")
    assert stranger.get(HELD).status_code == 403
    assert stranger.get("/data-docs/orders/orders/index.html").status_code == 403
    assert stranger.get("/data-docs/other/orders/index.html").status_code == 404


def test_the_data_docs_of_a_verdict_are_served_as_long_as_they_are_kept(
    fleet: FleetRecords, client: TestClient
) -> None:
    with Workspace.open(load_project(fleet.root)) as workspace:
        write_docs(workspace.storage, Verdict("orders", 2, "orders-2", 2, 2, "fail", [], HOSTILE))
    fleet.record("orders")
    found = client.get("/data-docs/orders/orders/orders-2_0000000002_fail.html")
    assert (found.status_code, found.headers["content-security-policy"][:18]) == (200, "default-src 'none'")
    assert "&lt;script&gt;" in found.text
    assert client.get("/data-docs/orders/orders/index.html").status_code == 200
    gone = client.get("/data-docs/orders/orders/orders-1_0000000001_pass.html")
    assert gone.status_code == 404
    assert "last 50 audited slices" in gone.text
    assert client.get("/data-docs/orders/orders/..%2F..%2Fm.db").status_code == 404


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("run `drawdown plan a` & look", "run <code>drawdown plan a</code> &amp; look"),
        ("`<b>`", "<code>&lt;b&gt;</code>"),
        ("a ` of its own <b>", "a ` of its own &lt;b&gt;"),
    ],
)
def test_commands_in_a_remedy_are_code_and_nothing_else_is_markup(text: str, html: str) -> None:
    assert str(coded(text)) == html


@pytest.mark.parametrize(
    ("offset", "text"),
    [
        (None, "the beginning"),
        ({"logOffset": 3}, "log entry 3"),
        ('{"logOffset":3}', "log entry 3"),
        ({"clicks": {"0": 5, "10": 7, "2": 6}}, "clicks 0: 5, 2: 6, 10: 7"),
        (
            {"sourceVersion": 1, "reservoirVersion": 4, "index": 2, "isStartingVersion": False},
            "version 4, file 2",
        ),
        (7, "7"),
        ("odd", "odd"),
    ],
)
def test_offsets_of_every_kind_are_short_texts(offset: object, text: str) -> None:
    assert offset_text(offset) == text


@pytest.mark.capability("SEE-08")
def test_every_link_of_every_page_is_below_the_prefix(fleet: FleetRecords, client: TestClient) -> None:
    fleet.record("orders")
    behind = TestClient(client.app, root_path="/team/airflow/drawdown")
    for path in (
        "/fleet",
        "/dags/orders",
        HELD,
        "/dags/orders__replay",
        "/data-docs/orders/orders/gone.html",
    ):
        found = behind.get(path)
        links = re.findall(r'(?:href|src)="([^"]*)"', found.text)
        assert links, path
        assert all(link.startswith(("/team/airflow/", "?")) for link in links), path
