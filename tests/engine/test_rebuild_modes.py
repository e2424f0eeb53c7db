"""Rebuilds in complete mode, and of a partitioned table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.support.rebuilds import (
    SPEC,
    comparison,
    end,
    event,
    land,
    live_version,
    next_version,
    rebuilt,
    rows,
    sums,
)
from tests.support.replays import REPLAYED, replayed
from tests.support.sandbox import Sandbox

COMPLETE = SPEC.replace("time_column: hour", "mode: complete")
EVER = "99"
"""As `until` of sums: in complete mode windows are there before they are closed."""
FIRST = [event("02T06:10", 1), event("02T06:20", 2, "b"), event("02T07:30", 4)]
SECOND = [event("02T08:10", 8, "b"), event("02T09:10", 16)]
THIRD = [event("02T09:50", 32, "b"), event("02T11:10", 64)]
FOURTH = [event("02T11:50", 128, "b"), event("02T13:10", 256)]


@pytest.mark.full
@pytest.mark.parametrize("publish", ["audited", pytest.param("direct", marks=pytest.mark.full)])
def test_an_output_in_complete_mode_is_rebuilt_from_the_whole_state(sandbox: Sandbox, publish: str) -> None:
    spec = COMPLETE.replace("mode: complete", f"mode: complete, publish: {publish}")
    live_version(sandbox, spec)
    land(sandbox, 1, FIRST)
    sandbox.run("hourly")
    land(sandbox, 2, SECOND)
    sandbox.run("hourly")
    next_version(sandbox, spec)
    assert rebuilt(sandbox).generation == 2
    old = sums(FIRST + SECOND, EVER, by_key=False)
    assert rows(sandbox) == old, "readers see nothing of it"
    found = comparison(sandbox)
    assert found["rows"] == {"live": 4, "shadow": 5}, "the last result of each, not all of them"
    assert (found["only_live"], found["only_shadow"]) == (1, 2), "06:00 is split by key"

    land(sandbox, 3, THIRD)
    assert sandbox.run("hourly").generation == 1
    before = sums(FIRST + SECOND + THIRD, EVER, by_key=False)
    assert rows(sandbox) == before
    end(sandbox, "approve")
    assert rows(sandbox) == sums(FIRST + SECOND, EVER), "as it was compared"
    assert sandbox.run("hourly").counts.read == len(THIRD)
    assert rows(sandbox) == sums(FIRST + SECOND + THIRD, EVER)

    land(sandbox, 4, FOURTH)
    assert sandbox.run("hourly").generation == 2
    assert rows(sandbox) == sums(FIRST + SECOND + THIRD + FOURTH, EVER)
    end(sandbox, "rollback")
    assert rows(sandbox) == before
    assert sandbox.run("hourly").counts.read == len(FOURTH)
    assert rows(sandbox) == sums(FIRST + SECOND + THIRD + FOURTH, EVER, by_key=False)


ODD = ["a", "with space", "c:d/e", "100%20 ü=", None]
"""Values whose folders have other names than they, and in a table's log others again."""
PARTITIONED = REPLAYED.replace("schema: hourly.ddl", "schema: hourly.ddl, partition_by: [k]")
BY_PARITY = "SELECT window.start AS hour, sum(n) AS total, k, n % 2 = 1 AS odd FROM events"
BY_PARITY += " GROUP BY window(at, '1 hour'), k, n % 2 = 1"


@pytest.mark.full
def test_a_partitioned_table_keeps_its_partitions_through_swap_and_roll_back(sandbox: Sandbox) -> None:
    waves = [
        [event(f"02T06:{10 + number}", 2**number, k) for number, k in enumerate(ODD + ODD)],  # type: ignore[arg-type]
        [event("02T08:10", 3, "a"), event("02T08:20", 5)],
        [event("02T09:10", 7, "with space"), event("02T09:20", 4, "new one")],
        [event("03T10:10", 9), event("04T01:00", 1)],
    ]
    three, four = list(chain(*waves[:3])), list(chain(*waves))
    next_version(sandbox, PARTITIONED, folder="hourly")
    land(sandbox, 1, waves[0])
    sandbox.run("hourly")
    land(sandbox, 2, waves[1])
    sandbox.run("hourly")
    by_parity(sandbox)
    rebuilt(sandbox)
    land(sandbox, 3, waves[2])
    assert sandbox.run("hourly").generation == 1
    live = sums(three, "02T09")
    assert rows(sandbox) == live
    rebuilt(sandbox)
    end(sandbox, "approve")
    assert seen(sandbox) == split(three, "02T09")

    land(sandbox, 4, waves[3])
    assert sandbox.run("hourly").generation == 2
    after = split(four, "04T01")
    assert seen(sandbox) == after
    assert replayed(sandbox, "2024-01-02", "2024-01-03").generation == 2
    assert seen(sandbox) == after
    end(sandbox, "rollback")
    assert rows(sandbox) == live
    assert sandbox.run("hourly").generation == 1
    assert rows(sandbox) == sums(four, "04T01")


def by_parity(sandbox: Sandbox) -> None:
    """The version that is wanted: one more grouping key, the same partitions."""
    next_version(sandbox, PARTITIONED)
    folder = sandbox.root / "include/pipelines/hourly/next"
    (folder / "transform.sql").write_text(BY_PARITY)
    (folder / "hourly.ddl").write_text("hour TIMESTAMP, total BIGINT, k STRING, odd BOOLEAN")


def split(events: Iterable[dict[str, Any]], until: str) -> Counter[tuple[Any, ...]]:
    """One computation over all events, of windows that end by `until`."""
    found: Counter[tuple[Any, ...]] = Counter()
    for each in events:
        if each["at"][8:13] < until:
            found[each["at"][8:13], each["k"], each["n"] % 2 == 1] += each["n"]
    return Counter((hour, total, k, odd) for (hour, k, odd), total in found.items())


def seen(sandbox: Sandbox) -> Counter[tuple[Any, ...]]:
    """What readers see, without Spark and with it, also one partition after the other."""
    found = rows(sandbox)
    table = sandbox.storage / "tables/hourly"
    assert DeltaTable(str(table)).metadata().partition_columns == ["k"]
    assert sandbox.spark is not None
    reader = sandbox.spark.read.format("delta").load(str(table))
    by_value = [
        row
        for value in {key for _, _, key, _ in found}
        for row in reader.where(reader["k"].eqNullSafe(value)).collect()
    ]
    assert Counter((f"{row[0]:%dT%H}", *row[1:]) for row in by_value) == found
    return found
