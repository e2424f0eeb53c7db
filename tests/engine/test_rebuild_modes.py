"""Rebuilds in complete mode, and of a partitioned table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.support.rebuilds import FIRST, FOURTH, SECOND, SPEC, THIRD, Hourly, event, sums
from tests.support.replays import REPLAYED, replayed

COMPLETE = SPEC.replace("time_column: hour", "mode: complete")
EVER = "99"
"""As `until` of sums: in complete mode windows are there before they are closed."""


@pytest.mark.full
@pytest.mark.parametrize("publish", ["audited", pytest.param("direct", marks=pytest.mark.full)])
def test_an_output_in_complete_mode_is_rebuilt_from_the_whole_state(hourly: Hourly, publish: str) -> None:
    spec = COMPLETE.replace("mode: complete", f"mode: complete, publish: {publish}")
    hourly.live_version(spec)
    hourly.arrive_and_run(1, FIRST)
    hourly.arrive_and_run(2, SECOND)
    hourly.next_version(spec)
    assert hourly.rebuilt().generation == 2
    old = sums(FIRST + SECOND, EVER, by_key=False)
    assert hourly.rows() == old, "readers see nothing of it"
    found = hourly.comparison()
    assert found["rows"] == {"live": 4, "shadow": 5}, "the last result of each, not all of them"
    assert (found["only_live"], found["only_shadow"]) == (1, 2), "06:00 is split by key"

    hourly.arrive(3, THIRD)
    assert hourly.run("hourly").generation == 1
    before = sums(FIRST + SECOND + THIRD, EVER, by_key=False)
    assert hourly.rows() == before
    hourly.end("approve")
    assert hourly.rows() == sums(FIRST + SECOND, EVER), "as it was compared"
    assert hourly.run("hourly").counts.read == len(THIRD)
    assert hourly.rows() == sums(FIRST + SECOND + THIRD, EVER)

    hourly.arrive(4, FOURTH)
    assert hourly.run("hourly").generation == 2
    assert hourly.rows() == sums(FIRST + SECOND + THIRD + FOURTH, EVER)
    hourly.end("rollback")
    assert hourly.rows() == before
    assert hourly.run("hourly").counts.read == len(FOURTH)
    assert hourly.rows() == sums(FIRST + SECOND + THIRD + FOURTH, EVER, by_key=False)


ODD = ["a", "with space", "c:d/e", "100%20 ü=", None]
"""Values whose folders have other names than they, and in a table's log others again."""
PARTITIONED = REPLAYED.replace("schema: hourly.ddl", "schema: hourly.ddl, partition_by: [k]")
BY_PARITY = "SELECT window.start AS hour, sum(n) AS total, k, n % 2 = 1 AS odd FROM events"
BY_PARITY += " GROUP BY window(at, '1 hour'), k, n % 2 = 1"


@pytest.mark.full
def test_a_partitioned_table_keeps_its_partitions_through_swap_and_roll_back(hourly: Hourly) -> None:
    waves = [
        [event(f"02T06:{10 + number}", 2**number, k) for number, k in enumerate(ODD + ODD)],  # type: ignore[arg-type]
        [event("02T08:10", 3, "a"), event("02T08:20", 5)],
        [event("02T09:10", 7, "with space"), event("02T09:20", 4, "new one")],
        [event("03T10:10", 9), event("04T01:00", 1)],
    ]
    three, four = list(chain(*waves[:3])), list(chain(*waves))
    hourly.next_version(PARTITIONED, folder="hourly")
    hourly.arrive_and_run(1, waves[0])
    hourly.arrive_and_run(2, waves[1])
    by_parity(hourly)
    hourly.rebuilt()
    hourly.arrive(3, waves[2])
    assert hourly.run("hourly").generation == 1
    live = sums(three, "02T09")
    assert hourly.rows() == live
    hourly.rebuilt()
    hourly.end("approve")
    assert seen(hourly) == split(three, "02T09")

    hourly.arrive(4, waves[3])
    assert hourly.run("hourly").generation == 2
    after = split(four, "04T01")
    assert seen(hourly) == after
    assert replayed(hourly, "2024-01-02", "2024-01-03").generation == 2
    assert seen(hourly) == after
    hourly.end("rollback")
    assert hourly.rows() == live
    assert hourly.run("hourly").generation == 1
    assert hourly.rows() == sums(four, "04T01")


def by_parity(hourly: Hourly) -> None:
    """The version that is wanted: one more grouping key, the same partitions."""
    hourly.next_version(PARTITIONED)
    folder = hourly.root / "include/pipelines/hourly/next"
    (folder / "transform.sql").write_text(BY_PARITY)
    (folder / "hourly.ddl").write_text("hour TIMESTAMP, total BIGINT, k STRING, odd BOOLEAN")


def split(events: Iterable[dict[str, Any]], until: str) -> Counter[tuple[Any, ...]]:
    """One computation over all events, of windows that end by `until`."""
    found: Counter[tuple[Any, ...]] = Counter()
    for each in events:
        if each["at"][8:13] < until:
            found[each["at"][8:13], each["k"], each["n"] % 2 == 1] += each["n"]
    return Counter((hour, total, k, odd) for (hour, k, odd), total in found.items())


def seen(hourly: Hourly) -> Counter[tuple[Any, ...]]:
    """What readers see, without Spark and with it, also one partition after the other."""
    found = hourly.rows()
    table = hourly.storage / "tables/hourly"
    assert DeltaTable(str(table)).metadata().partition_columns == ["k"]
    assert hourly.spark is not None
    reader = hourly.spark.read.format("delta").load(str(table))
    by_value = [
        row
        for value in {key for _, _, key, _ in found}
        for row in reader.where(reader["k"].eqNullSafe(value)).collect()
    ]
    assert Counter((f"{row[0]:%dT%H}", *row[1:]) for row in by_value) == found
    return found
