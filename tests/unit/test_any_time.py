"""Times, durations and requests out of texts that somebody has typed: a value, or one error."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic_core import PydanticCustomError

from drawdown.errors import DrawdownError
from drawdown.values import option_types
from drawdown.values.duration import Duration, option_ms
from drawdown.values.interval import Interval
from drawdown.values.moments import EARLIEST, LATEST, clamped, of_statistics
from tests.support import odd_values

pytestmark = pytest.mark.capability("SAFE-08")
YEARS = timedelta(days=36_500)
LENGTHS = (
    "1 day",
    "1 microsecond",
    "36500 days",
    "999999999 weeks",
    "1 hour 1 hour",
    "\u0663 days",
    "7d",
    "12h",
)


def texts(*likely: str) -> list[str]:
    chance = random.Random(1)
    found = [odd_values.any_text(chance, likely) for _ in range(2_000)]
    return [*likely, *found, *(odd_values.any_time(chance) for _ in range(2_000))]


def test_an_interval_is_one_with_which_replays_can_calculate_or_an_error() -> None:
    given = texts(*odd_values.TIMES)
    chance = random.Random(2)
    good = 0
    for start in given:
        end = chance.choice((*given, "2026-01-01"))
        interval = _parsed(start, end)
        if isinstance(interval, DrawdownError):
            assert interval.id == "replay.interval"
            assert "\n" not in interval.what
            assert len(interval.what) < 500
            continue
        good += 1
        wide = interval.wider(YEARS, YEARS)
        assert len({str(wide), wide.name, *wide.days(), str(interval.is_days)}) == 5
        assert Interval(wide.start, wide.start + YEARS)
        assert Interval.parse(interval.start.isoformat(), interval.end.isoformat()) == interval
    assert good > 100


def _parsed(start: str, end: str) -> Interval | DrawdownError:
    try:
        return Interval.parse(start, end)
    except DrawdownError as error:
        return error


def test_a_length_that_makes_too_many_parts_is_refused_before_there_is_one() -> None:
    whole = Interval.parse("0300-01-01", "9700-01-01")
    with pytest.raises(DrawdownError, match="more than 100,000 parts"):
        next(whole.parts(timedelta(microseconds=1)))
    assert len(list(whole.parts(YEARS))) == 95


def test_what_somebody_asks_for_is_clamped_in_utc() -> None:
    assert clamped(datetime.fromisoformat("0001-01-01T00:00:00+14:00")) == EARLIEST
    assert clamped(datetime.fromisoformat("9999-12-31T23:59:59-14:00")) == LATEST
    assert clamped(datetime(2026, 1, 1)) == datetime(2026, 1, 1, tzinfo=UTC)
    assert of_statistics("+10000-01-01T00:00:00.000Z") == LATEST
    assert of_statistics("-0044-03-15T00:00:00.000Z") == EARLIEST


@pytest.mark.parametrize("parse", [Duration.parse, option_ms], ids=["duration", "option"])
def test_a_duration_is_a_number_or_refused(parse: Callable[[str], Any]) -> None:
    for text in texts(*LENGTHS, *odd_values.NUMBERS, "9" * 5_000 + "d"):
        try:
            found = parse(text)
        except PydanticCustomError:
            continue
        assert found is None or EARLIEST + getattr(found, "delta", timedelta()) < LATEST


def test_an_option_that_is_taken_is_a_number_that_spark_reads() -> None:
    kinds = {
        name: kind for name, kind in vars(option_types).items() if isinstance(kind, option_types.OptionType)
    }
    for name in ("WHOLE", "COUNT", "RATIO", "SIZE", "DURATION", "VERSION"):
        for text in texts(*odd_values.NUMBERS, "9" * 5_000, "1" * 30 + "d", "\u0663d"):
            if kinds[name].takes(text):
                assert text.strip().isascii(), (name, text)
                assert len(text.strip()) <= 40, (name, text[:50])


def test_a_request_that_no_command_line_holds_is_refused() -> None:
    from drawdown.quarantine.request import as_argument

    assert json.loads(as_argument({"set": ["a = \0\ud800"]})) == {"set": ["a = \0\ud800"]}
    with pytest.raises(DrawdownError) as refused:
        as_argument({"set": ["x" * 10_000] * 20})
    assert refused.value.id == "quarantine.patch"
