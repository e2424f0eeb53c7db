"""Durations and schedules: what the words mean, and which are refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic_core import PydanticCustomError

from drawdown.spec import AssetRef, Duration
from drawdown.spec.scheduling.schedule import checked_schedule, is_interval


@pytest.mark.parametrize(
    ("text", "delta"),
    [
        ("30 minutes", timedelta(minutes=30)),
        ("1 day", timedelta(days=1)),
        ("1 hour 30 minutes", timedelta(minutes=90)),
        ("2 weeks", timedelta(days=14)),
        ("500 milliseconds", timedelta(milliseconds=500)),
        ("0 seconds", timedelta()),
    ],
)
def test_a_duration_means_what_it_says(text: str, delta: timedelta) -> None:
    assert Duration.parse(text) == Duration(text, delta)


@pytest.mark.parametrize(
    "text",
    ["", "30", "minutes", "-1 day", "1.5 hours", "1 month", "2 years", "999999999 weeks", "1 day ",
    "1 day, 2 hours",
     "1 Day", "\uff11 day", "1 day\n", "1 day " * 50],
)  # fmt: skip
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(PydanticCustomError):
        Duration.parse(text)


@pytest.mark.parametrize(
    "text", ["5 * * * *", "*/10 8-18 * * MON-FRI", "@daily", "@hourly", "15 minutes", "1 day", "0 0 29 2 *"]
)
def test_a_schedule_is_kept_as_written(text: str) -> None:
    assert checked_schedule(text) == text


def test_none_is_no_schedule_at_all() -> None:
    assert checked_schedule(None) is None
    assert checked_schedule("none") is None


def test_assets_name_pipelines() -> None:
    schedule = checked_schedule(["asset:flights", "asset:weather"])
    assert isinstance(schedule, list)
    assert [ref.pipeline for ref in schedule if isinstance(ref, AssetRef)] == ["flights", "weather"]


@pytest.mark.parametrize(
    "value",
    ["", "61 * * * *", "* * * *", "* * * * * *", "@dayly", "@once", "@continuous", "0 minutes",
    "asset:flights",
     [], ["flights"], ["asset:a", "asset:a"], ["asset:../a"], [5], 5, True, {"cron": "* * * * *"},
     "* " * 500, "0 0 31 2 *", "0 0 30 2 *", "1 microsecond", "59 seconds"],
)  # fmt: skip
def test_what_is_no_schedule_is_refused(value: object) -> None:
    with pytest.raises(PydanticCustomError):
        checked_schedule(value)


def test_intervals_are_told_from_cron_and_presets() -> None:
    assert is_interval("15 minutes")
    assert not is_interval("5 * * * *")
    assert not is_interval("0 0 * * MON")
    assert not is_interval("@daily")
