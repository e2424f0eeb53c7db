"""JOIN-07 to JOIN-15, JOIN-19, JOIN-20: two streams."""

from __future__ import annotations

from datetime import timedelta

import pytest

from drawdown.errors import TransformError
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox, multiset
from tests.support.two_streams import (
    WATERMARK,
    arrive,
    arrive_and_run,
    by_duckdb,
    clock,
    joining,
    out,
    spec,
    watermark,
)
from tests.support.verdicts import warnings

PAID_WITHIN_30_MINUTES = "o.id = p.id AND p.at >= o.at AND p.at <= o.at + INTERVAL 30 MINUTES"
COLUMNS = "o.id AS ordered, o.at AS ordered_at, p.id AS paid, p.at AS paid_at"
OUT = "ordered BIGINT, ordered_at TIMESTAMP, paid BIGINT, paid_at TIMESTAMP"
BOTH = spec(orders=WATERMARK, payments=WATERMARK)
NEITHER = spec(orders="", payments="")
SIDES = "orders", "payments"


def _pipeline(sandbox: Sandbox, spec: str, sql: str, out: str = OUT) -> None:
    joining(sandbox, spec, sql, out)


def _join(kind: str, on: str = PAID_WITHIN_30_MINUTES) -> str:
    return f"FROM orders o {kind} JOIN payments p ON {on}"


def _three_runs(sandbox: Sandbox) -> None:
    """Matches within a run and over two; rows that never find one; time that passes all but the last."""
    arrive_and_run(
        sandbox,
        "1",
        orders=[(1, "10:00"), (2, "10:05"), (3, "10:20")],
        payments=[(1, "10:10"), (8, "10:35")],
    )
    arrive_and_run(sandbox, "2", orders=[(4, "10:40")], payments=[(2, "10:30"), (1, "10:15"), (3, "10:55")])
    assert all(None not in row for row in out(sandbox)), "nobody knows yet that no match will come"
    arrive_and_run(sandbox, "3", orders=[(5, "13:00"), (6, "13:05")], payments=[(5, "13:10")])


def _outer(sandbox: Sandbox, kind: str) -> list[tuple[object, ...]]:
    """DuckDB's outer join of all that landed; of the unmatched, those whose time has passed."""
    passed = watermark("13:05", "13:10")
    return [
        row
        for row in by_duckdb(sandbox, f"SELECT {COLUMNS} {_join(kind)}", *SIDES)
        if row[2] is not None or row[1] + timedelta(minutes=30) < passed
    ]


@pytest.mark.full
@pytest.mark.conformance("JOIN-07")
def test_an_inner_join_without_watermark_matches_whatever_the_age(sandbox: Sandbox) -> None:
    sql = f"SELECT {COLUMNS} {_join('', 'o.id = p.id')}"
    _pipeline(sandbox, NEITHER, sql)
    warning = warnings(sandbox, "paid")["join.unbounded-state"]
    assert (
        "INNER join keeps every row of the left side (orders) and of the right side (payments)"
        in warning.what
    )
    assert "the left side (orders) has no watermark, the join condition has no time" in warning.what
    assert "give a `watermark:` to the right side (payments) and the left side (orders)" in warning.do

    arrive_and_run(sandbox, "1", orders=[(1, "10:00"), (2, "10:00")], payments=[(1, "10:10")])
    arrive_and_run(sandbox, "2", orders=[(3, "20:00")], payments=[(3, "20:00")])
    arrive_and_run(sandbox, "3", payments=[(2, "23:59"), (1, "23:59")])
    assert multiset(out(sandbox)) == multiset(by_duckdb(sandbox, sql, *SIDES))
    assert (2, clock("10:00"), 2, clock("23:59")) in out(sandbox)


@pytest.mark.full
@pytest.mark.conformance("JOIN-08")
def test_an_inner_join_within_a_time_range(sandbox: Sandbox) -> None:
    sql = f"SELECT {COLUMNS} {_join('')}"
    _pipeline(sandbox, BOTH, sql)
    assert warnings(sandbox, "paid") == {}
    _three_runs(sandbox)
    assert multiset(out(sandbox)) == multiset(by_duckdb(sandbox, sql, *SIDES))
    assert [row[0] for row in out(sandbox)] == [1, 1, 2, 5]


@pytest.mark.full
@pytest.mark.conformance("JOIN-08")
def test_a_watermark_alone_frees_no_state_and_plan_says_so(sandbox: Sandbox) -> None:
    sql = f"SELECT {COLUMNS} {_join('', 'o.id = p.id')}"
    _pipeline(sandbox, BOTH, sql)
    warning = warnings(sandbox, "paid")["join.unbounded-state"]
    assert "no time constraint between the two sides; a watermark alone frees no state" in warning.what
    _three_runs(sandbox)
    assert multiset(out(sandbox)) == multiset(by_duckdb(sandbox, sql, *SIDES))


@pytest.mark.full
@pytest.mark.conformance("JOIN-09")
def test_an_inner_join_on_equal_windows(sandbox: Sandbox) -> None:
    sql = """
        SELECT o.id, o.half.start AS half
        FROM (SELECT id, window(at, '30 minutes') AS half FROM orders) o
        JOIN (SELECT id, window(at, '30 minutes') AS half FROM payments) p ON o.id = p.id AND o.half = p.half
    """
    _pipeline(sandbox, BOTH, sql, out="id BIGINT, half TIMESTAMP")
    assert warnings(sandbox, "paid") == {}
    _three_runs(sandbox)
    half = 'time_bucket(INTERVAL 30 MINUTES, "at")'
    expected = f"""
        SELECT o.id, o.half FROM (SELECT id, {half} AS half FROM orders) o
        JOIN (SELECT id, {half} AS half FROM payments) p ON o.id = p.id AND o.half = p.half
    """
    assert multiset(out(sandbox)) == multiset(by_duckdb(sandbox, expected, *SIDES))
    assert [id for id, _ in out(sandbox)] == [1, 1, 5]


@pytest.mark.conformance("JOIN-09")
def test_a_time_beside_its_window_is_refused_before_the_first_batch(sandbox: Sandbox) -> None:
    side = "(SELECT *, window(at, '30 minutes') AS half FROM {})"
    sql = f"SELECT {COLUMNS} FROM {side} o JOIN {side} p ON o.id = p.id AND o.half = p.half"
    _pipeline(sandbox, BOTH, sql.format("orders", "payments"))
    arrive(sandbox, "1", orders=[(1, "10:00")], payments=[(1, "10:10")])
    error = refused(sandbox, "paid", "watermark.two-columns", TransformError)
    assert (
        "the left side of a join of two streams has more than one event-time column: at, half" in error.what
    )
    assert "`at + INTERVAL 0 SECONDS`" in error.do

    side = side.replace("*", "id, at + INTERVAL 0 SECONDS AS at")
    sql = f"SELECT {COLUMNS} FROM {side} o JOIN {side} p ON o.id = p.id AND o.half = p.half"
    _pipeline(sandbox, BOTH, sql.format("orders", "payments"))
    sandbox.run("paid")
    assert out(sandbox) == [(1, clock("10:00"), 1, clock("10:10"))]


@pytest.mark.full
@pytest.mark.conformance("JOIN-10")
def test_a_left_outer_join_gives_out_unpaid_orders_when_time_has_passed_them(sandbox: Sandbox) -> None:
    _pipeline(sandbox, BOTH, f"SELECT {COLUMNS} {_join('LEFT OUTER')}")
    assert warnings(sandbox, "paid") == {}
    _three_runs(sandbox)
    assert multiset(out(sandbox)) == multiset(_outer(sandbox, "LEFT OUTER"))
    assert [row[0] for row in out(sandbox) if row[2] is None] == [3, 4]


@pytest.mark.full
@pytest.mark.conformance("JOIN-11")
def test_a_right_outer_join_gives_out_payments_without_an_order(sandbox: Sandbox) -> None:
    _pipeline(sandbox, BOTH, f"SELECT {COLUMNS} {_join('RIGHT OUTER')}")
    assert warnings(sandbox, "paid") == {}
    _three_runs(sandbox)
    assert multiset(out(sandbox)) == multiset(_outer(sandbox, "RIGHT OUTER"))
    assert [row[2] for row in out(sandbox) if row[0] is None] == [3, 8]


@pytest.mark.full
@pytest.mark.conformance("JOIN-12")
def test_a_full_outer_join_gives_out_the_unmatched_of_both_sides(sandbox: Sandbox) -> None:
    _pipeline(sandbox, BOTH, f"SELECT {COLUMNS} {_join('FULL OUTER')}")
    assert warnings(sandbox, "paid") == {}
    _three_runs(sandbox)
    assert multiset(out(sandbox)) == multiset(_outer(sandbox, "FULL OUTER"))
    assert sorted(row[0] or row[2] for row in out(sandbox) if None in row) == [3, 3, 4, 8]


@pytest.mark.full
@pytest.mark.conformance("JOIN-13")
def test_a_left_semi_join_gives_each_paid_order_once(sandbox: Sandbox) -> None:
    _pipeline(
        sandbox, BOTH, f"SELECT o.id AS ordered, o.at AS ordered_at {_join('LEFT SEMI')}",
        out="ordered BIGINT, ordered_at TIMESTAMP",
    )  # fmt: skip
    assert warnings(sandbox, "paid") == {}
    _three_runs(sandbox)
    expected = by_duckdb(sandbox, f"SELECT o.id, o.at {_join('SEMI')}", *SIDES)
    assert multiset(out(sandbox)) == multiset(expected)
    assert [row[0] for row in out(sandbox)] == [1, 2, 5]


@pytest.mark.full
@pytest.mark.conformance("JOIN-15")
def test_null_rows_come_out_in_a_later_run_with_data_on_one_side_only(sandbox: Sandbox) -> None:
    _pipeline(sandbox, BOTH, f"SELECT {COLUMNS} {_join('FULL OUTER')}")
    arrive_and_run(sandbox, "1", orders=[(1, "10:00"), (2, "10:00")], payments=[(1, "10:00"), (9, "10:05")])
    matched = [(1, clock("10:00"), 1, clock("10:00"))]
    assert out(sandbox) == matched

    run = arrive_and_run(sandbox, "2", orders=[(3, "12:00")])
    assert run.watermark is not None
    assert run.watermark.replace(tzinfo=None) == watermark("12:00", "10:05"), (
        "payments may still be on their way"
    )
    assert out(sandbox) == matched

    run = arrive_and_run(sandbox, "3", payments=[(3, "12:10")])
    assert run.watermark is not None
    assert run.watermark.replace(tzinfo=None) == watermark("12:00", "12:10"), (
        "orders are known to be that far"
    )
    expected = by_duckdb(sandbox, f"SELECT {COLUMNS} {_join('FULL OUTER')}", *SIDES)
    assert multiset(out(sandbox)) == multiset(expected)
    assert [row[0] or row[2] for row in out(sandbox) if None in row] == [2, 9]
