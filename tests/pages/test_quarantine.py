"""The page of a quarantine: counts by reason, filters, rows as `samples:` allows, bounded, commands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from drawdown.observe import quarantine_view
from drawdown.quarantine import newest_rows
from drawdown.sinks.locations import quarantine_uri
from drawdown.spec import load_pipeline, load_project
from tests.pages.conftest import Ask
from tests.support.fleet_records import FleetRecords
from tests.support.pipeline_history import HOSTILE
from tests.support.quarantine_rows import set_rows_aside

RULES = "rules: [{name: small, check: amount < 90, on_fail: quarantine}]\n"


@pytest.fixture
def records(fleet: FleetRecords) -> FleetRecords:
    fleet.pipeline("orders")
    (fleet.root / "include/pipelines/orders/quality.yaml").write_text(RULES)
    fleet.ran("orders")
    fleet.record("orders")
    return fleet


def two_batches(fleet: FleetRecords) -> None:
    set_rows_aside(fleet, "orders", 0, (["small"], None, json.dumps({"amount": 95, "name": "Ada"})))
    set_rows_aside(
        fleet,
        "orders",
        1,
        (["small", "late"], None, json.dumps({"amount": 96, "name": HOSTILE})),
        (["malformed"], f"{{broken {HOSTILE}", None),
    )


def page(client: Any, query: str = "") -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/quarantine/orders/orders?format=json{query}").json()["view"]
    return found


@pytest.mark.capability("SEE-04")
def test_rows_are_counted_by_reason_and_filtered_by_reason_and_run(
    records: FleetRecords, as_reader_of: Ask
) -> None:
    two_batches(records)
    client = as_reader_of("orders")
    found = page(client)
    assert {each["reason"]: (each["rows"], each["open"]) for each in found["reasons"]} == {
        "small": (2, 1),
        "late": (1, 0),
        "malformed": (1, 1),
    }
    assert found["is_all"] is True
    assert found["runs"] == ["orders-1", "orders-0"], "newest first"
    assert found["replay"] == "drawdown quarantine replay orders"
    of_rule = page(client, "&reason=small")
    assert [row["batch_id"] for row in of_rule["rows"]] == [1, 0]
    assert of_rule["replay"] == "drawdown quarantine replay orders --rule small"
    assert of_rule["body"]["conf"] == {"quarantine": {"pipeline": "orders", "rules": ["small"]}}
    assert (of_rule["taken"], of_rule["open"]) == (2, 1)
    of_both = page(client, "&reason=small&run=orders-0")
    assert [row["batch_id"] for row in of_both["rows"]] == [0]
    assert of_both["replay"] == "drawdown quarantine replay orders --rule small --batch 0"
    assert of_both["body"]["conf"] == {
        "quarantine": {"pipeline": "orders", "rules": ["small"], "batches": [0]}
    }
    assert page(client, "&reason=nosuch")["rows"] == []
    text = client.get("/quarantine/orders/orders?reason=nosuch").text
    assert "No row matches." in text
    assert "drawdown quarantine" not in text, "without a reason or a batch it would take all rows"


@pytest.mark.capability("SEE-04")
@pytest.mark.parametrize(
    ("samples", "records_shown"),
    [
        ("", ["", '{"amount": 96}', '{"amount": 95}']),
        ("samples: none\n", ["", "", ""]),
        ("samples: [name]\n", ["", json.dumps({"name": HOSTILE}), '{"name": "Ada"}']),
        (
            "samples: all\n",
            [
                f"{{broken {HOSTILE}",
                json.dumps({"amount": 96, "name": HOSTILE}),
                '{"amount": 95, "name": "Ada"}',
            ],
        ),
    ],
)
def test_a_row_shows_what_samples_allows(
    records: FleetRecords, as_reader_of: Ask, samples: str, records_shown: list[str]
) -> None:
    two_batches(records)
    with (records.root / "include/project.yaml").open("a") as project:
        project.write(samples)
    client = as_reader_of("orders")
    rows = page(client)["rows"]
    assert sorted(row["record"] for row in rows) == sorted(records_shown)
    text = client.get("/quarantine/orders/orders").text
    assert not re.search(r"<script>|<img", text)
    assert ("Ada" in text) == (samples in ("samples: [name]\n", "samples: all\n"))


@pytest.mark.capability("SEE-04")
def test_a_large_quarantine_is_read_in_part(
    records: FleetRecords, as_reader_of: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    for batch in range(6):
        set_rows_aside(records, "orders", batch, *[(["small"], f"{batch}/{n}", None) for n in range(10)])
    monkeypatch.setattr(quarantine_view, "LOOKED_AT", 25)
    opened: list[str] = []
    parts = newest_rows.parquet_parts

    def noted(storage: Any, path: str, *more: Any) -> Any:
        opened.append(path)
        return parts(storage, path, *more)

    monkeypatch.setattr(newest_rows, "parquet_parts", noted)
    client = as_reader_of("orders")
    found = page(client)
    assert len(opened) == 3, "files of 10 rows"
    assert (found["looked_at"], found["of"], found["is_all"]) == (25, 60, False)
    assert {row["batch_id"] for row in found["rows"]} == {5, 4, 3}
    text = client.get("/quarantine/orders/orders").text
    assert "The newest 25 of 60 rows" in text
    assert "Replay all open rows<" in text, "how many there are is not known"


def test_a_quarantine_without_rows_and_another_dag_say_so(records: FleetRecords, as_reader_of: Ask) -> None:
    client = as_reader_of("orders", "other")
    assert "has set no row aside" in client.get("/quarantine/orders/orders").text
    assert client.get("/quarantine/other/orders").status_code == 404
    assert as_reader_of("other").get("/quarantine/orders/orders").status_code == 403


def test_a_quarantine_that_cannot_be_read_is_said_on_the_page(
    records: FleetRecords, as_reader_of: Ask
) -> None:
    two_batches(records)
    project = load_project(records.root)
    for file in Path(quarantine_uri(project, load_pipeline(project, "orders"))).glob("_delta_log/*.json"):
        file.write_text("{")
    found = as_reader_of("orders").get("/quarantine/orders/orders")
    assert found.status_code == 503
    assert "sink.unreadable" in found.text
    assert "Traceback" not in found.text
