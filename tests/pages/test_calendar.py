"""The calendar of replay intervals: what became of each, what may need a replay, and how to start it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.fixtures.pages import Ask as AsReader
from tests.support.fleet_records import FleetRecords
from tests.support.replayed_days import day, drained, replayable, replayed

pytestmark = pytest.mark.capability("SEE-05")
HOURS = timedelta(hours=1)
Ask = Callable[..., Any]
"""Asks for a page as somebody who may read these DAGs."""


@pytest.fixture
def ask(as_reader_of: AsReader) -> Ask:
    return lambda path, *dags: as_reader_of(*dags).get(path)


@pytest.fixture
def records(fleet: FleetRecords) -> FleetRecords:
    """Days 1 to 10 of January, without 5 and 6; the watermark is in day 10."""
    replayable(fleet, "daily")
    drained(
        fleet, "daily", (day(1) + HOURS, day(4) + HOURS), (day(7) + HOURS, day(10) + 9 * HOURS),
        watermark=day(10) + 8 * HOURS,
    )  # fmt: skip
    fleet.record("daily")
    return fleet


def fates(ask: Ask, *dags: str) -> dict[int, str]:
    """By day of January 2026."""
    calendar = ask("/calendar/daily?format=json", *(dags or ("daily",))).json()["calendar"]
    row = next(row for row in calendar["rows"] if row["start"].startswith("2026-01"))
    return {cell["column"] + 1: cell["fate"] for cell in row["cells"]}


def ranges(ask: Ask, *dags: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask("/calendar/daily?format=json", *(dags or ("daily",))).json()[
        "calendar"
    ]["ranges"]
    return found


def test_days_are_published_or_have_nothing_or_are_not_finished(ask: Ask, records: FleetRecords) -> None:
    found = fates(ask)
    assert [found[each] for each in (1, 4, 5, 6, 7, 9)] == [
        "published", "published", "nothing", "nothing", "published", "published",
    ]  # fmt: skip
    assert found[10] == "open", "the watermark has not passed its end and `lookahead:`"


def test_before_the_first_rows_nothing_is_missing(ask: Ask, records: FleetRecords) -> None:
    calendar = ask("/calendar/daily?format=json", "daily").json()["calendar"]
    december = next(row for row in calendar["rows"] if row["start"].startswith("2025-12"))
    assert {cell["fate"] for cell in december["cells"]} == {"unrecorded"}


def test_a_replay_fills_days_and_a_failed_one_is_to_be_repeated(ask: Ask, records: FleetRecords) -> None:
    replayed(records, "daily", day(5), day(7))
    replayed(records, "daily", day(8), day(9), state="failed")
    assert [fates(ask)[each] for each in (5, 6, 8)] == ["replayed", "replayed", "failed"]
    (found,) = ranges(ask)
    assert found["command"].endswith("--from 2026-01-08 --to 2026-01-09")


def test_a_replay_above_makes_days_stale_until_they_are_replayed(ask: Ask, records: FleetRecords) -> None:
    replayable(records, "raw")
    (records.root / "include/pipelines/daily").rename(records.root / "old")
    replayable(records, "daily", reads="tables/raw")
    records.record("raw", "daily")
    replayed(records, "raw", day(2), day(4), "daily")
    assert [fates(ask, "daily", "raw")[each] for each in (1, 2, 3, 4)] == [
        "published", "stale", "stale", "published",
    ]  # fmt: skip
    newest = next(each for each in ranges(ask, "daily", "raw") if each["fate"] == "stale")
    assert "raw was replayed" in newest["why"]
    assert newest["intervals"] == 2
    assert newest["in_airflow"] == (
        "airflow backfill create --dag-id daily__replay --from-date 2026-01-02 --to-date 2026-01-03"
        " --reprocess-behavior completed"
    )
    replayed(records, "daily", day(2), day(4))
    assert fates(ask, "daily", "raw")[2] == "replayed"


def test_a_pipeline_above_that_the_reader_may_not_see_has_no_name(ask: Ask, records: FleetRecords) -> None:
    replayable(records, "secretive")
    (records.root / "include/pipelines/daily").rename(records.root / "old")
    replayable(records, "daily", reads="tables/secretive")
    records.record("secretive", "daily")
    replayed(records, "secretive", day(2), day(4), "daily")
    assert fates(ask)[2] == "stale"
    for page in (ask("/calendar/daily", "daily"), ask("/calendar/daily?format=json", "daily")):
        assert "secretive" not in page.text
        assert "a pipeline above it was replayed" in page.text


def test_the_page_links_to_airflows_dialog_and_shows_each_day(ask: Ask, records: FleetRecords) -> None:
    page = ask("/calendar/daily", "daily").text
    assert 'class="out" href="/dags/daily__replay"' in page
    assert "2026-01-05 00:00:00 to 2026-01-06 00:00:00 UTC: no published rows are recorded" in page
    assert "drawdown backfill daily --from 2026-01-05 --to 2026-01-07" in page
    assert "end at or before <strong>2026-01-10 07:00:00" in page


def test_the_button_of_a_range_asks_for_a_backfill_as_airflow_takes_it(
    ask: Ask, records: FleetRecords
) -> None:
    from airflow.api_fastapi.core_api.datamodels.backfills import BackfillPostBody

    page = ask("/calendar/daily", "daily").text
    assert "Replay 2 intervals</button>" in page
    assert 'data-to="/api/v2/backfills"' in page
    (body,) = re.findall('data-body="([^"]*)"', page)
    asked = BackfillPostBody.model_validate_json(html.unescape(body))
    assert (asked.dag_id, asked.reprocess_behavior) == ("daily__replay", "completed")
    assert (asked.from_date, asked.to_date) == (day(5), day(6)), "both are starts of intervals"


def test_earlier_parts_are_a_link_away(ask: Ask, records: FleetRecords) -> None:
    replayed(records, "daily", day(1) - timedelta(days=900), day(1) - timedelta(days=899))
    calendar = ask("/calendar/daily?format=json", "daily").json()["calendar"]
    earlier = ask(f"/calendar/daily?format=json&until={calendar['earlier'].replace('+', '%2B')}", "daily")
    rows = earlier.json()["calendar"]["rows"]
    assert rows[-1]["start"].startswith("2024-12")
    assert earlier.json()["calendar"]["later"] is not None


@pytest.mark.parametrize(("length", "unit"), [("5 minutes", "hour"), ("6 hours", "day"), ("7 days", "year")])
def test_other_lengths_have_other_rows(ask: Ask, fleet: FleetRecords, length: str, unit: str) -> None:
    replayable(fleet, "daily")
    spec = fleet.root / "include/pipelines/daily/pipeline.yaml"
    spec.write_text(spec.read_text().replace("1 day", length))
    drained(fleet, "daily", (day(1), day(10)), watermark=day(11))
    fleet.record("daily")
    calendar = ask("/calendar/daily?format=json", "daily").json()["calendar"]
    assert calendar["unit"] == unit
    starts = [cell["start"] for row in calendar["rows"] for cell in row["cells"]]
    assert starts == sorted(set(starts))
    for row in calendar["rows"]:
        assert all(0 <= cell["column"] < calendar["columns"] for cell in row["cells"])
    assert ask("/calendar/daily", "daily").status_code == 200


def test_a_pipeline_without_replay_says_so(ask: Ask, fleet: FleetRecords) -> None:
    fleet.pipeline("orders")
    fleet.record("orders")
    assert "has no <code>replay:</code>" in ask("/calendar/orders", "orders").text


def test_a_pipeline_that_has_published_nothing_has_an_empty_calendar(ask: Ask, fleet: FleetRecords) -> None:
    replayable(fleet, "daily")
    fleet.record("daily")
    assert "Nothing is published yet" in ask("/calendar/daily", "daily").text
    assert ranges(ask) == []
