"""The schedule at which drains cost as much as a stream that is always on, and when it is not told."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawdown.cost.crossing import LEAST_RUNS, Crossing, crossing

WHOLE = Fraction(1)
DAY = 86_400


def runs(fixed: float, per_row: float, *rows: int) -> list[tuple[int, int]]:
    return [(count, round((fixed + per_row * count) * 1e6)) for count in rows]


def told(found: Crossing | str) -> Crossing:
    assert isinstance(found, Crossing), found
    return found


def test_a_run_of_ten_seconds_crosses_at_ten_seconds_where_rows_take_nothing() -> None:
    found = told(crossing(runs(10, 0, *range(0, 1_000, 100)), Fraction(10_000), WHOLE))
    assert found.every == pytest.approx(10)


def test_rows_that_take_half_the_day_double_it() -> None:
    of_a_day = runs(10, 0.001, *range(1_000, 11_000, 1_000))
    found = told(crossing(of_a_day, Fraction(DAY * 500), WHOLE))
    assert (found.fixed, found.per_row) == (pytest.approx(10), pytest.approx(0.001))
    assert found.every == pytest.approx(20)


def test_a_tenth_of_a_stream_is_a_tenth_as_dear() -> None:
    found = told(crossing(runs(10, 0, *range(10)), Fraction(0), Fraction(1, 10)))
    assert found.every == pytest.approx(100)


def test_rows_that_fill_the_day_leave_no_schedule() -> None:
    of_a_day = runs(10, 0.001, *range(1_000, 11_000, 1_000))
    assert told(crossing(of_a_day, Fraction(DAY * 1_000), WHOLE)).every is None


def test_more_rows_that_took_no_longer_take_nothing() -> None:
    found = told(crossing(runs(30, -0.001, *range(10)), Fraction(5), WHOLE))
    assert (found.per_row, found.fixed) == (0, pytest.approx(29.9955))


@pytest.mark.parametrize(
    ("of", "says"),
    [
        (runs(10, 1, *range(LEAST_RUNS - 1)), f"{LEAST_RUNS - 1} of {LEAST_RUNS} runs"),
        (runs(10, 1, *[1_000] * 20), "about the same number of rows"),
        (runs(10, 1, *range(1_000, 1_990, 50)), "about the same number of rows"),
        (runs(10, 1, *[0] * 20), "none of its runs read a row"),
        (runs(-5, 1, *range(10, 200, 10)), "proportional to rows"),
    ],
)
def test_it_is_not_guessed(of: list[tuple[int, int]], says: str) -> None:
    found = crossing(of, Fraction(100), WHOLE)
    assert isinstance(found, str)
    assert says in found


@given(
    fixed=st.floats(0.5, 500),
    per_row=st.floats(1e-6, 1e-2),
    rows=st.lists(st.integers(0, 10**6), min_size=LEAST_RUNS, max_size=50),
    daily=st.integers(0, 10**6),
)
def test_at_the_crossing_a_day_costs_the_same(
    fixed: float, per_row: float, rows: list[int], daily: int
) -> None:
    found = crossing(runs(fixed, per_row, 1, 10**6, *rows), Fraction(daily), WHOLE)
    if isinstance(found, Crossing) and found.every is not None:
        a_day = DAY / found.every * found.fixed + found.per_row * daily
        assert a_day == pytest.approx(DAY, rel=1e-6)
        assert found.fixed == pytest.approx(fixed, rel=1e-3, abs=1e-3)
