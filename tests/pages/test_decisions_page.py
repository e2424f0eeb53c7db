"""The page of decisions: what waits, until when, compared numbers, samples, and where to decide."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from drawdown.metastore.records import Batch, Counts, Verdict
from tests.pages.conftest import Ask
from tests.support.compared_rebuild import COMPARISON, rebuilt
from tests.support.fleet_records import FleetRecords
from tests.support.pipeline_history import HOSTILE, history


@pytest.mark.capability("SEE-04")
def test_a_held_slice_shows_what_failed_against_what_is_published(
    fleet: FleetRecords, as_reader_of: Ask
) -> None:
    history(fleet, "orders")
    fleet.record("orders")
    client = as_reader_of("orders")
    text = client.get("/decisions").text
    assert "Held: 80 rows (batch 2)" in text
    assert "Its term ends in" in text
    assert "/dags/drawdown__decide/runs/held__orders__orders-2.2/tasks/choose/required_actions" in text
    assert "drawdown release orders --why" in text
    assert "drawdown discard orders --why" in text
    assert re.search(r"no gaps</th><td><span [^>]*>a warning", text)
    assert "3 unexpected" in text
    assert not re.search(r"<script>|<img", text), "samples and texts are text"
    [waiting] = client.get("/decisions?format=json").json()["waiting"]
    [held] = waiting["slices"]
    assert [entry["judgement"] for entry in held["failed"]] == ["fail", "warn"]
    assert held["failed"][1]["samples"] == [{"id": HOSTILE}]
    assert {"name": "rows read", "here": 100, "before": 100, "differs": False} in held["numbers"]


@pytest.mark.capability("SEE-04")
def test_measures_are_compared_with_the_slice_published_before(
    fleet: FleetRecords, as_reader_of: Ask
) -> None:
    fleet.pipeline("sales")
    store = fleet.metastore
    for number, rows in enumerate((10, 900)):
        fleet.ran("sales", counts=Counts(read=rows, fed=rows, staged=rows, published=10 - 10 * number))
        lease = fleet.leased("sales", str(number))
        store.create_checkpoint(lease, 1, "_drawdown/sales/checkpoint-1", {})
        counts = Counts(read=rows, fed=rows, staged=rows)
        store.note_batch(
            lease, Batch("sales", 1, number, f"sales-{number}", lease.epoch, counts=counts), [], {}
        )
        store.mark_committed(lease, 1, number)
        verdict = Verdict("sales", 1, f"sales-{number}", number, number, "fail" if number else "pass")
        store.record_verdict(lease, _with_measures(verdict, rows))
        if not number:
            store.mark_published(lease, 1, [0])
        store.release(lease)
    fleet.record("sales")
    [waiting] = as_reader_of("sales").get("/decisions?format=json").json()["waiting"]
    numbers = {each["name"]: (each["here"], each["before"]) for each in waiting["slices"][0]["numbers"]}
    assert numbers == {"rows read": (900, 10), "rows staged": (900, 10), "row_count": (900, 10)}


def _with_measures(verdict: Verdict, rows: int) -> Verdict:
    return replace(verdict, measures={"row_count": rows})


@pytest.mark.capability("SEE-04")
def test_a_compared_rebuild_shows_both_sides_and_leads_to_its_approval(
    fleet: FleetRecords, as_reader_of: Ask
) -> None:
    fleet.pipeline("sales")
    fleet.ran("sales")
    rebuilt(fleet, "sales")
    fleet.record("sales")
    client = as_reader_of("sales")
    text = client.get("/decisions").text
    assert "/dags/drawdown__rebuild/runs/manual__sales/tasks/approve/required_actions" in text
    assert "drawdown rebuild approve sales --why" in text
    assert "keys: 1 only live, 0 only rebuilt, 3 with different rows" in text
    assert not re.search(r"<script>|<img", text)
    [waiting] = client.get("/decisions?format=json").json()["waiting"]
    numbers = {each["name"]: (each["here"], each["before"]) for each in waiting["rebuild"]["numbers"]}
    assert numbers == {"rows": (9, 10), "rows dropped as late": (0, 2), "sum of amount": (90, 100)}
    assert waiting["rebuild"]["sample"] == COMPARISON["sample"]


def test_what_was_decided_since_no_longer_waits(fleet: FleetRecords, as_reader_of: Ask) -> None:
    fleet.pipeline("kept")
    fleet.ran("kept", verdict="fail")
    fleet.held("kept")
    fleet.record("kept")
    client = as_reader_of("kept")
    assert "Held: 3 rows" in client.get("/decisions").text
    lease = fleet.leased("kept")
    fleet.metastore.discard_batches(lease, 1, [0])
    fleet.metastore.release(lease)
    assert "Nothing waits for a decision" in client.get("/decisions").text


@pytest.mark.capability("SEE-07")
def test_decisions_of_other_dags_are_not_shown(fleet: FleetRecords, as_reader_of: Ask) -> None:
    for name in ("seen", "secret"):
        fleet.pipeline(name)
        fleet.ran(name, verdict="fail")
        fleet.held(name)
    fleet.record("seen", "secret")
    text = as_reader_of("seen").get("/decisions").text
    assert "release seen" in text
    assert "secret" not in text
    assert "Nothing of secret waits" in as_reader_of("seen").get("/decisions?pipeline=secret").text
