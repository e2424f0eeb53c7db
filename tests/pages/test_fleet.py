"""The fleet page: worst first, what to do, filters, rights, hostile text, its JSON twin, a metastore away."""

from __future__ import annotations

import re
import time

import pytest

from drawdown.metastore.records import Counts
from tests.pages.conftest import Ask
from tests.support.fleet_records import FleetRecords

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def rows(text: str) -> list[str]:
    return re.findall(r'<th scope="row"><a [^>]*>([^<]*)</a>', text)


def pills(text: str) -> dict[str, int]:
    """The counts by state at the top."""
    found = re.findall(r'<li><a class="state [^>]*>(\d+) ([^<]*)</a>', text)
    return {state: int(count) for count, state in found}


@pytest.mark.capability("SEE-01")
def test_the_worst_is_first_and_each_row_says_why_and_what_to_do(
    fleet: FleetRecords, as_reader_of: Ask
) -> None:
    for name in ("fine", "late", "broken", "kept", "new"):
        fleet.pipeline(name, "freshness: 1 second\n" if name == "late" else "")
    origin = {"dag_id": "broken", "dag_run_id": "manual__1"}
    fleet.ran("fine", verdict="pass", counts=Counts(read=7, fed=7, published=7), stop_reason="drained")
    fleet.ran("late", verdict="pass", counts=Counts(read=1, fed=1, published=1))
    error = {"id": "transform.failed", "what": HOSTILE, "where": "", "do": "look"}
    fleet.ran("broken", "failed", error=error, origin=origin)
    fleet.ran("kept", "failed", verdict="fail")
    fleet.held("kept", rows=1234)
    fleet.waits("fine", files=3, bytes=2_000_000)
    fleet.record("fine", "late", "broken", "kept", "new")
    time.sleep(1.1)  # longer than the promise of `late`
    client = as_reader_of("fine", "late", "broken", "kept", "new")
    text = client.get("/fleet").text
    assert rows(text) == ["broken", "kept", "late", "new", "fine"]
    assert "transform.failed: &lt;script&gt;" in text
    assert not re.search(r"<script>|<img", text)
    assert "/drawdown/runs/broken/manual__1" in text, "a failed run leads to its page"
    assert "1 · 1,234 rows" in text
    assert "3 files, 2 MB" in text
    assert "UTC" in text


def test_the_twin_in_json_says_the_same(fleet: FleetRecords, as_reader_of: Ask) -> None:
    fleet.pipeline("fine", "owner: ada\ntags: [gold]\n")
    fleet.ran("fine", verdict="warn", counts=Counts(read=7, fed=7, published=7))
    fleet.waits("fine", files=0, bytes=0)
    fleet.record("fine")
    client = as_reader_of("fine")
    for found in (
        client.get("/fleet?format=json"),
        client.get("/fleet", headers={"Accept": "application/json"}),
    ):
        [row] = found.json()["rows"]
        assert (row["pipeline"], row["state"]) == ("fine", "ok")
        assert row["backlog"] == [
            {"source": "events", "amount": 0, "unit": "files", "bytes": 0, "oldest": None, "headroom": None}
        ]
        assert [outcome for outcome, _ in row["bars"]] == ["warn"]


@pytest.mark.capability("SEE-07")
def test_only_pipelines_of_dags_that_somebody_may_read_are_shown(
    fleet: FleetRecords, as_reader_of: Ask
) -> None:
    for name in ("seen", "secret"):
        fleet.pipeline(name)
        fleet.ran(name)
    fleet.record("seen", "secret")
    found = as_reader_of("seen").get("/fleet")
    assert rows(found.text) == ["seen"]
    assert "secret" not in found.text
    assert found.headers["content-security-policy"].endswith("frame-ancestors 'self'")


def test_filters_by_state_owner_tag_and_name(fleet: FleetRecords, as_reader_of: Ask) -> None:
    fleet.pipeline("orders", "owner: ada\ntags: [gold]\n")
    fleet.pipeline("clicks", "owner: bob\n")
    fleet.ran("orders")
    fleet.record("orders", "clicks")
    client = as_reader_of("orders", "clicks")
    for query, expected in {
        "": ["clicks", "orders"],
        "?state=ok": ["orders"],
        "?owner=bob": ["clicks"],
        "?tag=gold": ["orders"],
        "?text=CLI": ["clicks"],
        "?text=none": [],
    }.items():
        assert rows(client.get(f"/fleet{query}").text) == expected, query
    assert pills(client.get("/fleet?state=ok").text) == {"never ran": 1, "ok": 1}
    assert pills(client.get("/fleet?owner=bob&state=ok").text) == {"never ran": 1}, "of bob's"


def test_a_metastore_that_is_away_is_said_on_the_page(fleet: FleetRecords, as_reader_of: Ask) -> None:
    fleet.metastore.close()
    (fleet.root / "m.db").write_text("this is no database")
    found = as_reader_of("a").get("/fleet")
    assert found.status_code == 503
    assert "metastore." in found.text
    assert "Traceback" not in found.text
