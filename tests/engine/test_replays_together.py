"""Replays beside each other, and again: the table is that of one computation over all the data."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from drawdown.metastore.records import Run
from drawdown.values.interval import Interval, shown
from tests.support.replays import DAYS, FIRST, drain_days, replayed
from tests.support.sandbox import Sandbox


def totals(sandbox: Sandbox) -> Counter[tuple[datetime, str]]:
    rows = sandbox.delta("tables/hourly")
    found = Counter({(hour.astimezone(UTC), k): total for hour, k, total in rows})
    assert len(found) == len(rows), "no window twice"
    return found


@pytest.mark.full
def test_ten_intervals_together_and_again_equal_one_computation(sandbox: Sandbox) -> None:
    expected = drain_days(sandbox)
    assert totals(sandbox) != expected, "late events were dropped"
    days = list(Interval(FIRST, FIRST + timedelta(days=DAYS)).parts(timedelta(days=1)))
    order = [*days, *random.Random(2).sample(days, 3)]
    random.Random(3).shuffle(order)

    def replay(day: Interval) -> Run:
        return replayed(sandbox, shown(day.start), shown(day.end))

    with ThreadPoolExecutor(3) as threads:
        assert len(list(threads.map(replay, order))) == len(order)
    assert totals(sandbox) == expected
