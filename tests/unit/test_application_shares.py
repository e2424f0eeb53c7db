"""Shares of an application are whole numbers that add up to it, whatever its runs did when."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawdown.metastore.application_shares import TimeSpan, apportioned, cpu_shares, time_shares

MOMENTS = st.integers(0, 10_000)
SPANS = st.lists(st.tuples(MOMENTS, MOMENTS), min_size=1, max_size=8).map(
    lambda pairs: [TimeSpan(f"r{i}", *pair) for i, pair in enumerate(pairs)]
)
WEIGHTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 10**15), min_size=1)


def shared(end: int, *spans: tuple[int, int]) -> list[tuple[int, int]]:
    """Time and idle time of each span, of an application from 0 on."""
    runs = [TimeSpan(f"r{i}", *span) for i, span in enumerate(spans)]
    return [(share.us, share.idle_us) for share in time_shares(0, end, runs).values()]


def test_a_run_alone_has_the_whole_application() -> None:
    assert shared(100, (30, 90)) == [(100, 40)]


def test_runs_one_after_the_other_have_their_own_time_and_share_the_rest() -> None:
    assert shared(100, (20, 30), (30, 80)) == [(10 + 20, 20), (50 + 20, 20)]


def test_runs_at_the_same_time_share_it() -> None:
    assert shared(100, (0, 100), (40, 60)) == [(90, 0), (10, 0)]


def test_a_run_that_the_next_one_found_dead_ends_with_its_application() -> None:
    assert shared(100, (50, 9_000), (60, 80)) == [(25 + 40, 25), (25 + 10, 25)]


def test_what_remains_of_a_division_is_somebodys() -> None:
    assert sorted(apportioned(10, {"a": 1, "b": 1, "c": 1}).values()) == [3, 3, 4]
    assert apportioned(5, {"a": 0, "b": 0}) in ({"a": 3, "b": 2}, {"a": 2, "b": 3})
    assert apportioned(7, {"a": 0, "b": 5}) == {"a": 0, "b": 7}


def test_processor_time_is_a_runs_own_and_the_rest_goes_by_time() -> None:
    assert cpu_shares(1_000, {"a": 100, "b": 500}, {"a": 3, "b": 1}) == {"a": 400, "b": 600}


def test_ticks_too_few_for_what_tasks_took_go_by_what_they_took() -> None:
    assert cpu_shares(10, {"a": 9, "b": 3}, {"a": 1, "b": 1}) in ({"a": 8, "b": 2}, {"a": 7, "b": 3})


def test_tasks_of_no_run_are_part_of_the_rest() -> None:
    assert cpu_shares(100, {"a": 10, "": 50}, {"a": 1, "b": 1}) == {"a": 55, "b": 45}


@pytest.mark.parametrize("end", [0, 1, 10_000])
@given(spans=SPANS)
def test_time_shares_add_up_to_the_application(end: int, spans: list[TimeSpan]) -> None:
    shares = time_shares(0, end, spans)
    assert shares.keys() == {span.run_id for span in spans}
    assert sum(share.us for share in shares.values()) == end
    assert all(0 <= share.idle_us <= share.us for share in shares.values())


@given(total=st.integers(0, 10**15), weights=WEIGHTS)
def test_parts_add_up_and_differ_from_exact_ones_by_less_than_one(
    total: int, weights: dict[str, int]
) -> None:
    parts = apportioned(total, weights)
    assert sum(parts.values()) == total
    whole = sum(weights.values())
    for key, part in parts.items():
        exact = total * weights[key] / whole if whole else total / len(weights)
        assert abs(part - exact) < 1 + exact * 1e-12


@given(total=st.integers(0, 10**12), own=WEIGHTS, weights=WEIGHTS)
def test_processor_time_adds_up_too(total: int, own: Mapping[str, int], weights: dict[str, int]) -> None:
    parts = cpu_shares(total, own, weights)
    assert parts.keys() == weights.keys()
    assert sum(parts.values()) == total
    assert all(part >= 0 for part in parts.values())
