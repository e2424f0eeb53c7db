"""How many workers a backlog gets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drawdown.launch.sizing import Size, Waiting, rows_of, workers_for
from drawdown.metastore.records import Batch, MeasuredRun
from drawdown.spec import StandaloneCluster

EACH = {"bytes": "1m", "offsets": 1_000}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def profile(workers: Any, **keys: Any) -> StandaloneCluster:
    return StandaloneCluster.model_validate({"kind": "standalone", "workers": workers, **keys})


def number(workers: Any, *backlogs: dict[str, dict[str, Any]]) -> int:
    return workers_for(profile(workers), [Waiting(backlog) for backlog in backlogs]).workers


def test_a_number_is_that_number_whatever_waits() -> None:
    assert workers_for(profile(3), [Waiting({"flights": {"bytes": 10**12}})]) == Size(
        3, "the profile says so"
    )


@pytest.mark.parametrize(
    ("backlog", "workers"),
    [
        ({}, 1),
        ({"flights": {"files": 0, "bytes": 0}}, 1),
        ({"flights": {"files": 9, "bytes": 2**20}}, 1),
        ({"flights": {"files": 9, "bytes": 2**20 + 1}}, 2),
        ({"flights": {"bytes": 2**20}, "planes": {"bytes": 2**20}}, 2),
        ({"flights": {"bytes": 2**40}}, 4),
        ({"weather": {"offsets": {"weather": 1_500, "gusts": 700}}}, 3),
        ({"flights": {"bytes": 2**21}, "weather": {"offsets": {"weather": 2_500}}}, 3),
    ],
)
def test_the_unit_that_asks_for_most_decides_within_the_bounds(
    backlog: dict[str, dict[str, Any]], workers: int
) -> None:
    assert number({"min": 1, "max": 4, "each": EACH}, backlog) == workers


def test_a_size_says_what_decided_it() -> None:
    weather = [Waiting({"weather": {"offsets": {"weather": 2_500}}})]
    size = workers_for(profile({"max": 4, "each": EACH}), weather)
    assert str(size) == "3 workers: 2,500 offsets wait, and `each` is 1,000 for one worker"


def test_one_is_not_several() -> None:
    size = workers_for(profile({"max": 4, "each": {"files": 3}}), [Waiting({"flights": {"files": 1}})])
    assert size.why.startswith("1 file waits, and")


def test_the_backlogs_of_a_group_add_up() -> None:
    waiting = {"flights": {"bytes": 2**20}}
    assert number({"max": 4, "each": EACH}, waiting, waiting, waiting) == 3


@pytest.mark.parametrize("found", [{}, {"versions": 1}, {"files": 1}])
def test_a_source_that_nobody_has_counted_in_these_units_may_be_anything(found: dict[str, int]) -> None:
    size = workers_for(profile({"max": 4, "each": {"offsets": 5}}), [Waiting({"tables": found})])
    assert str(size) == "4 workers: `max`, because what waits at tables is not counted in offsets"


def test_what_reads_something_else_than_the_backlog_may_be_anything() -> None:
    assert workers_for(profile({"max": 4, "each": EACH}), None).workers == 4
    assert workers_for(profile({"max": 4, "within": "1 hour"}), None).workers == 4
    assert workers_for(profile(2), None).workers == 2


def test_there_are_never_fewer_than_the_least() -> None:
    assert number({"min": 2, "max": 4, "each": EACH}, {}) == 2


# `within`: by what earlier runs took

WITHIN = {"min": 1, "max": 8, "within": "10 minutes"}


def runs(*measured: tuple[int, float, int], **values: Any) -> list[MeasuredRun]:
    """Of rows, seconds and workers of one core each; the driver has one more."""
    return [
        MeasuredRun(
            f"r{number}", "drain", "succeeded", NOON + timedelta(hours=number), rows,
            {"us": round(seconds * 1e6), "cores": workers + 1, "memory": 1, "start_us": 1} | values,
            "pair",
        )
        for number, (rows, seconds, workers) in enumerate(measured)
    ]  # fmt: skip


# 30 s, and 1 s for 1,000 rows.
ONE_WORKER = runs(*[(rows * 1_000, 30 + rows, 1) for rows in (10, 20, 30, 40, 60)])


def size(waiting: int | None, history: list[MeasuredRun], **more: Any) -> Size:
    return workers_for(profile(WITHIN | more), [Waiting({"flights": {"bytes": 1}}, waiting, history)])


@pytest.mark.parametrize(
    ("rows", "workers"),
    # 570 s are left for rows: a worker manages 570,000 in them.
    [(0, 1), (1, 1), (570_000, 1), (570_001, 2), (1_140_000, 2), (4_000_000, 8), (10**9, 8)],
)
def test_a_large_backlog_gets_as_many_workers_as_end_in_time(rows: int, workers: int) -> None:
    assert size(rows, ONE_WORKER).workers == workers


def test_it_says_what_it_expects_and_what_it_takes_for_granted() -> None:
    assert str(size(1_000_000, ONE_WORKER)) == (
        "2 workers: about 1,000,000 rows wait, and by 5 earlier runs they take about 8 minutes 50 seconds,"
        " if workers share them evenly; 1 would take about 17 minutes 10 seconds"
    )
    assert str(size(10**9, ONE_WORKER)).endswith("`max` is too few for `within: 10 minutes`")
    assert str(size(0, ONE_WORKER)) == "1 worker: no rows wait"


def test_runs_of_two_sizes_show_what_workers_share() -> None:
    # 1,000 rows take 0.4 s that workers do not share and 0.6 s that they do: with 3 workers 0.6 s.
    history = ONE_WORKER + runs(*[(rows * 1_000, 30 + 0.6 * rows, 3) for rows in (100, 101, 102)])
    # 570 / (0.4 + 0.6 / n) thousand rows: 814 with 2 workers, 950 with 3, 1,036 with 4.
    for rows, workers in [(814_000, 2), (815_000, 3), (950_000, 3), (951_000, 4), (1_036_000, 4)]:
        assert size(rows, history).workers == workers
    # 0.4 s are left however many they are: 1,425,000 rows at most.
    assert size(1_500_000, history).workers == 8


def test_runs_of_about_one_size_have_all_their_time_for_rows() -> None:
    history = runs(*[(100_000 + extra, 100, 1) for extra in range(5)])
    assert [size(rows, history).workers for rows in (590_000, 610_000)] == [1, 2]


@pytest.mark.parametrize(
    ("rows", "history", "why"),
    [
        (500, ONE_WORKER[:4], "4 of 5 earlier runs with rows on this profile needed"),
        (500, [], "0 of 5 earlier runs"),
        (None, ONE_WORKER, "how many rows wait at flights is unknown"),
    ],
)
def test_until_there_is_a_history_each_decides_or_else_the_most(
    rows: int | None, history: list[MeasuredRun], why: str
) -> None:
    assert size(rows, history).workers == 8
    by_amount = size(rows, history, each={"bytes": "1m"})
    assert by_amount.workers == 1
    assert f"(`within` cannot decide: {why}" in by_amount.why


def test_only_drains_that_ended_and_had_rows_are_a_history() -> None:
    assert "0 of 5" in size(1, runs(*[(0, 9, 1)] * 9)).why
    assert "0 of 5" in size(1, runs(*[(9, 9, 1)] * 9, start_us=None)).why


def test_the_times_of_a_group_add_up() -> None:
    one = Waiting({"flights": {"bytes": 1}}, 285_000, ONE_WORKER)
    group = [one, one]
    # Each 30 s and 285 s: 630 s with 1 worker.
    assert workers_for(profile(WITHIN), [one]).workers == 1
    assert workers_for(profile(WITHIN), group).workers == 2


def test_workers_with_more_cores_are_fewer() -> None:
    wide = profile(WITHIN, worker_cores=4)
    assert workers_for(wide, [Waiting({"flights": {"bytes": 1}}, 4_000_000, ONE_WORKER)]).workers == 2


# How many rows wait


def read(**sources: dict[str, int]) -> Batch:
    return Batch("flights", 1, 0, "r1", 1, by_source=sources)


def test_bytes_are_rows_by_what_earlier_batches_read_of_that_source() -> None:
    batches = [
        read(flights={"read": 10, "bytes": 1_000}, planes={"read": 1, "bytes": 10}),
        read(flights={"read": 30, "bytes": 3_000}),
    ]
    assert rows_of({"flights": {"files": 1, "bytes": 500}}, batches) == 5
    assert rows_of({"flights": {"bytes": 500}, "planes": {"bytes": 500}}, batches) == 55


def test_offsets_are_rows() -> None:
    assert rows_of({"weather": {"offsets": {"weather": 1_500, "gusts": 700}}}, []) == 2_200


@pytest.mark.parametrize(
    "found", [{}, {"versions": 3}, {"bytes": 500}], ids=["uncounted", "versions", "bytes never read"]
)
def test_rows_that_no_record_shows_are_unknown(found: dict[str, int]) -> None:
    of_before_bytes_were_noted = [read(flights={"read": 10})]
    assert rows_of({"flights": found, "weather": {"offsets": {}}}, of_before_bytes_were_noted) is None


def test_nothing_is_nothing() -> None:
    assert rows_of({"flights": {"files": 0, "bytes": 0}}, []) == 0
