"""The quarantine and its replay, the replay of an interval beside a drain, and rebuilds, in a bucket."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.bucket_sandbox import BucketSandbox, HourlyInBucket
from tests.support.rebuilds import FIRST, FOURTH, SECOND, THIRD, UPDATE, sums
from tests.support.replays import DAYS, drain_days, replayed
from tests.support.replays import FIRST as FIRST_DAY
from tests.support.set_aside import CORRECTED, NAME, closed, fill, land, replay, states, write


@pytest.mark.capability("OBJ-05")
def test_rows_set_aside_are_fed_to_the_open_window_once(lake: BucketSandbox) -> None:
    fill(lake)
    assert states(lake) == {"95": "open", "96": "open", "150": "open", "broken": "open"}
    write(lake, CORRECTED)
    assert replay(lake).counts.replayed == 2
    assert states(lake) == {"95": "replayed", "96": "replayed", "150": "open", "broken": "open"}
    assert replay(lake).counts.replayed == 0
    patched = replay(lake, patch=("delay = cast(cast(delay as double) as int)",), rules=("malformed",))
    assert patched.counts.replayed == 1
    land(lake, "c", "3,2024-01-01T11:30:00Z,1")
    lake.run(NAME)
    # 10:00 and 10:10 were fed, 10:20 and 10:25 replayed, 10:27 patched; 150 stays out.
    assert closed(lake) == [(10, 5, 5 + 5 + 7 + 7 + 3)]


@pytest.mark.capability("OBJ-06")
@pytest.mark.parametrize("days", [2, pytest.param(DAYS, marks=pytest.mark.full)])
def test_intervals_are_replayed_beside_a_drain(lake: BucketSandbox, days: int) -> None:
    """The late events of two days are in the table then, and the events of the drain, too."""
    expected = drain_days(lake)
    live = _totals(lake)
    assert live != expected, "late events were dropped"
    closing, new = FIRST_DAY + timedelta(days=DAYS + 2), FIRST_DAY + timedelta(days=DAYS, hours=5)
    rows = [{"at": at.isoformat(), "k": "a"} for at in (new, closing)]
    lake.land_json("landing/events/9.json", rows)
    every = [FIRST_DAY + timedelta(days=day) for day in range(days)]
    with ThreadPoolExecutor(3) as threads:
        drained = threads.submit(lake.run, "hourly")
        replays = [
            threads.submit(replayed, lake, f"{day:%Y-%m-%d}", f"{day + timedelta(days=1):%Y-%m-%d}")
            for day in every
        ]
        assert drained.result().counts.read == 2
        for each in replays:
            assert each.result().state == "succeeded"
    found = _totals(lake)
    again = {at for at, _ in expected if at < FIRST_DAY + timedelta(days=days)}
    wanted = Counter({key: n for key, n in expected.items() if key[0] in again})
    wanted += Counter({key: n for key, n in live.items() if key[0] not in again})
    hour = FIRST_DAY + timedelta(days=DAYS)
    # Of the two runs before, one event each has opened the first hour of the eleventh day.
    opened = Counter(
        (datetime.fromisoformat(row["at"]).replace(minute=0), row["k"])
        for row in lake.json_rows("landing/events")
        if hour <= datetime.fromisoformat(row["at"]) < closing
    )
    assert found == wanted + opened


@pytest.mark.capability("OBJ-07")
def test_a_rebuild_is_swapped_in_by_one_commit_and_rolled_back(hourly: HourlyInBucket) -> None:
    hourly.live_version()
    hourly.arrive_and_run(1, FIRST + SECOND)
    hourly.next_version()
    assert hourly.rebuilt().counts.read == len(FIRST + SECOND)
    assert hourly.rows() == sums(FIRST + SECOND, "02T09", by_key=False), "readers see nothing of it"
    version = hourly.table("tables/hourly").version()
    hourly.end("approve")
    assert hourly.rows() == sums(FIRST + SECOND, "02T09")
    assert hourly.table("tables/hourly").version() == version + 1
    hourly.end("rollback")
    assert hourly.rows() == sums(FIRST + SECOND, "02T09", by_key=False)


@pytest.mark.capability("OBJ-07")
@pytest.mark.full
def test_a_rebuild_goes_live_beside_drains_and_is_rolled_back(hourly: HourlyInBucket) -> None:
    hourly.live_version()
    hourly.arrive_and_run(1, FIRST)
    hourly.arrive_and_run(2, SECOND)
    hourly.next_version()
    assert hourly.rebuilt().counts.read == len(FIRST + SECOND)
    assert hourly.rows() == sums(FIRST + SECOND, "02T09", by_key=False), "readers see nothing of it"
    hourly.arrive(3, THIRD)
    assert hourly.run("hourly").generation == 1
    assert hourly.rebuilt().counts.read == len(THIRD), "it goes on where it stopped"
    version = hourly.table("tables/hourly").version()
    assert hourly.end("approve").generation == 2
    assert hourly.rows() == sums(FIRST + SECOND + THIRD, "02T11")
    assert hourly.table("tables/hourly").version() == version + 1, "one commit"
    run = hourly.arrive_and_run(4, FOURTH)
    assert (run.generation, run.counts.read) == (2, len(FOURTH))
    assert hourly.rows() == sums(FIRST + SECOND + THIRD + FOURTH, "02T13")
    assert hourly.end("rollback").generation == 1
    assert hourly.rows() == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)
    assert hourly.run("hourly").counts.read == len(FOURTH), "it reads again what came since the swap"
    assert hourly.rows() == sums(FIRST + SECOND + THIRD + FOURTH, "02T13", by_key=False)


@pytest.mark.capability("OBJ-07")
@pytest.mark.full
def test_a_discarded_rebuild_leaves_nothing_but_what_is_live(hourly: HourlyInBucket) -> None:
    hourly.live_version(UPDATE)
    hourly.arrive_and_run(1, FIRST)
    hourly.next_version(UPDATE.replace("keys: [hour]", "keys: [hour, k]"))
    hourly.rebuilt()
    assert any("checkpoint-2/" in key for key in hourly.keys("_drawdown/hourly"))
    hourly.end("discard")
    assert not any("checkpoint-2/" in key for key in hourly.keys("_drawdown/hourly"))
    hourly.arrive_and_run(2, SECOND)
    assert hourly.rows() == sums(FIRST + SECOND, "02T10", by_key=False)


def _totals(lake: BucketSandbox) -> Counter[tuple[datetime, str]]:
    rows = lake.delta("tables/hourly")
    found = Counter({(hour.astimezone(UTC), k): total for hour, k, total in rows})
    assert len(found) == len(rows), "no window twice"
    return found
