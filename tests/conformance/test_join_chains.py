"""JOIN-16 to JOIN-18 and JOIN-20: joins behind and before other stateful operators, and for a long time."""

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

BOTH = spec(orders=WATERMARK, payments=WATERMARK)
PAID_WITHIN_30_MINUTES = "p.id = o.id AND p.at >= o.at AND p.at <= o.at + INTERVAL 30 MINUTES"
SIDES = "orders", "payments"


@pytest.mark.full
@pytest.mark.conformance("JOIN-16")
def test_three_streams_joined_one_after_the_other(sandbox: Sandbox) -> None:
    chain = f"""
        SELECT po.id, po.ordered_at, po.paid_at, s.at AS sent_at
        FROM (
            SELECT o.id, o.at AS ordered_at, PAID AS paid_at
            FROM orders o JOIN payments p ON {PAID_WITHIN_30_MINUTES}
        ) po
        LEFT OUTER JOIN shipments s
        ON s.id = po.id AND s.at >= po.ordered_at AND s.at <= po.ordered_at + INTERVAL 1 HOUR
    """
    three = spec(orders=WATERMARK, payments=WATERMARK, shipments=WATERMARK)
    columns = "id BIGINT, ordered_at TIMESTAMP, paid_at TIMESTAMP, sent_at TIMESTAMP"
    arrive(
        sandbox,
        "1",
        orders=[(1, "10:00"), (2, "10:05"), (3, "10:10"), (4, "10:12")],
        payments=[(1, "10:10"), (4, "10:20")],
        shipments=[(1, "10:20")],
    )
    joining(sandbox, three, chain.replace("PAID", "p.at"), columns)
    error = refused(sandbox, "paid", "watermark.two-columns", TransformError)
    assert (
        "left side of a join of two streams has more than one event-time column: ordered_at, paid_at"
        in error.what
    )
    assert "`ordered_at + INTERVAL 0 SECONDS`, which has no watermark" in error.do

    sql = chain.replace("PAID", "p.at + INTERVAL 0 SECONDS")
    joining(sandbox, three, sql, columns)
    sandbox.run("paid")
    arrive_and_run(sandbox, "2", payments=[(2, "10:30"), (3, "10:45")])
    assert [row[0] for row in out(sandbox)] == [1], "orders 2 and 4 are paid, and may still be sent"
    arrive_and_run(
        sandbox, "3", orders=[(5, "13:00")], payments=[(5, "13:00")], shipments=[(2, "10:50"), (5, "13:00")]
    )
    assert multiset(out(sandbox)) == multiset(by_duckdb(sandbox, sql, *SIDES, "shipments"))
    assert [(row[0], row[3] is None) for row in out(sandbox)] == [
        (1, False),
        (2, False),
        (4, True),
        (5, False),
    ]


@pytest.mark.full
@pytest.mark.conformance("JOIN-17")
def test_windows_counted_on_both_sides_and_joined(sandbox: Sandbox) -> None:
    counted = "SELECT window(at, '1 hour') AS hour, count(*) AS n FROM {} GROUP BY window(at, '1 hour')"
    sql = f"""
        SELECT o.hour.start AS hour, o.n AS orders, p.n AS payments
        FROM ({counted.format("orders")}) o JOIN ({counted.format("payments")}) p ON o.hour = p.hour
    """
    joining(sandbox, BOTH, sql, "hour TIMESTAMP, orders BIGINT, payments BIGINT")
    assert warnings(sandbox, "paid") == {}
    arrive_and_run(sandbox, "1", orders=[(1, "10:00"), (2, "10:59")], payments=[(1, "10:30")])
    arrive_and_run(sandbox, "2", orders=[(3, "11:01"), (4, "12:30")], payments=[(2, "11:05")])
    assert out(sandbox) == [], "a payment of 10 o'clock may still come"
    arrive_and_run(sandbox, "3", orders=[(5, "13:20")], payments=[(3, "11:20"), (4, "13:30")])

    counted = "SELECT date_trunc('hour', \"at\") AS hour, count(*) AS n FROM {} GROUP BY 1"
    closed = by_duckdb(
        sandbox,
        f"""SELECT o.hour, o.n, p.n
        FROM ({counted.format("orders")}) o JOIN ({counted.format("payments")}) p ON o.hour = p.hour
        WHERE o.hour + INTERVAL 1 HOUR <= TIMESTAMP '{watermark("13:20", "13:30")}'""",
        *SIDES,
    )
    assert multiset(out(sandbox)) == multiset(closed)
    assert out(sandbox) == [(clock("10:00"), 2, 1), (clock("11:00"), 1, 2)]


@pytest.mark.full
@pytest.mark.conformance("JOIN-18")
def test_pairs_within_a_time_range_counted_in_windows(sandbox: Sandbox) -> None:
    pairs = f"SELECT o.at FROM orders o JOIN payments p ON {PAID_WITHIN_30_MINUTES}"
    sql = f"SELECT window.start AS hour, count(*) AS n FROM ({pairs}) GROUP BY window(at, '1 hour')"
    joining(sandbox, BOTH, sql, "hour TIMESTAMP, n BIGINT")
    assert warnings(sandbox, "paid") == {}
    arrive_and_run(sandbox, "1", orders=[(1, "10:00"), (2, "10:50")], payments=[(1, "10:20"), (1, "10:25")])
    arrive_and_run(sandbox, "2", orders=[(3, "11:10")], payments=[(2, "11:15"), (3, "11:12")])
    assert out(sandbox) == [], "an order of 10:59 may still be paid"
    arrive_and_run(sandbox, "3", orders=[(4, "13:00")], payments=[(4, "13:00")])

    hours = f"SELECT date_trunc('hour', o.at) AS hour, count(*) FROM ({pairs}) o GROUP BY 1"
    closed = [row for row in by_duckdb(sandbox, hours, *SIDES) if row[0] < clock("13:00")]
    assert multiset(out(sandbox)) == multiset(closed)
    assert out(sandbox) == [(clock("10:00"), 3), (clock("11:00"), 1)]


def _hour(hour: int, minutes: int, first_id: int, step: int = 1) -> list[tuple[int, str]]:
    """Four rows of an hour, ten minutes apart; every `step`-th of them, so many minutes past it."""
    start = clock("00:00") + timedelta(hours=hour, minutes=minutes)
    return [(first_id + n, f"{start + timedelta(minutes=10 * n):%H:%M}") for n in range(0, 4, step)]


def _kept(sandbox: Sandbox) -> list[int]:
    """Rows in the state of the join's left and right side after the last batch."""
    assert sandbox.spark is not None
    checkpoint = str(sandbox.storage / "_drawdown" / "paid" / "checkpoint-1")
    reader = sandbox.spark.read.format("statestore")
    return [reader.option("joinSide", side).load(checkpoint).count() for side in ("left", "right")]


@pytest.mark.full
@pytest.mark.conformance("JOIN-20")
def test_state_of_both_sides_stays_small_while_time_goes_on(sandbox: Sandbox) -> None:
    """12 runs, each an hour later, orders and payments by turns: only what may still be matched is kept."""
    sql = f"""
        SELECT o.id, o.at AS ordered_at, p.at AS paid_at
        FROM orders o LEFT OUTER JOIN payments p ON {PAID_WITHIN_30_MINUTES}
    """
    joining(sandbox, BOTH, sql, "id BIGINT, ordered_at TIMESTAMP, paid_at TIMESTAMP")
    kept = {}
    for hour in range(12):
        if hour % 2 == 0:
            arrive(sandbox, str(hour), orders=_hour(hour, 0, first_id=10 * hour))
        else:
            paid = _hour(hour - 1, 20, first_id=10 * (hour - 1), step=2)
            arrive(sandbox, str(hour), payments=[*paid, *_hour(hour, 0, first_id=10 * hour)])
        assert sandbox.run("paid").counts.late == 0
        if hour in (4, 5, 10, 11):
            kept[hour] = _kept(sandbox)

    assert (kept[4], kept[5]) == (kept[10], kept[11]), "as much state after twelve hours as after six"
    assert max(max(rows) for rows in kept.values()) <= 8
    passed = f"TIMESTAMP '{watermark('10:30', '11:30') - timedelta(minutes=30)}'"
    final = f"SELECT * FROM ({sql}) WHERE paid_at IS NOT NULL OR ordered_at < {passed}"
    assert multiset(out(sandbox)) == multiset(by_duckdb(sandbox, final, *SIDES))
    assert len(out(sandbox)) == 6 * 2 + 5 * 2
