"""Counts and times in sentences: one way of saying each, in all of the library."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from drawdown.values.text import counted, in_utc, lasting, utc

LIBRARY = Path(__file__).parents[2] / "include" / "drawdown"
BY_HAND = re.compile(r"\((?:s|es)\)")


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (0, "file", "0 files"),
        (1, "file", "1 file"),
        (1_200, "new file", "1,200 new files"),
        (2, "batch", "2 batches"),
        (1, "batch", "1 batch"),
    ],
)
def test_a_count_and_its_noun_agree(number: int, noun: str, said: str) -> None:
    assert counted(number, noun) == said


def test_a_noun_may_bring_its_plural() -> None:
    assert counted(3, "entry", "entries") == "3 entries"


def test_a_time_is_in_utc_to_the_second() -> None:
    at = datetime(2026, 1, 31, 9, 30, 0, 123, tzinfo=UTC)
    assert utc(at) == "2026-01-31 09:30:00 UTC"
    assert in_utc(at.astimezone(timezone(timedelta(hours=2)))) == "2026-01-31 09:30:00"
    assert in_utc(at.replace(tzinfo=None)) == "2026-01-31 09:30:00"


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (timedelta(minutes=30), "30 minutes"),
        (timedelta(days=1, hours=2), "1 day 2 hours"),
        (timedelta(seconds=61), "1 minute 1 second"),
        (timedelta(milliseconds=3), "less than a second"),
    ],
)
def test_a_length_of_time_is_in_words(time: timedelta, said: str) -> None:
    assert lasting(time) == said


def test_no_module_makes_a_plural_by_hand() -> None:
    found = [
        f"{file.relative_to(LIBRARY)}: {line.strip()}"
        for file in sorted(LIBRARY.rglob("*.py"))
        for line in file.read_text().splitlines()
        if BY_HAND.search(line) and not line.lstrip().startswith("#")
    ]
    assert found == []
