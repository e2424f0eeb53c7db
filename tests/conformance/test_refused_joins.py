"""JOIN-14 and JOIN-19: what two streams are refused to be joined by, and what is named as missing."""

from __future__ import annotations

import pytest

from drawdown.errors import TransformError
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox
from tests.support.two_streams import WATERMARK, arrive, arrive_and_run, joining, out, spec

SAME = "o.id = p.id"
IN_TIME = f"{SAME} AND p.at >= o.at AND p.at <= o.at + INTERVAL 30 MINUTES"
BOTH = spec(orders=WATERMARK, payments=WATERMARK)
BOTH_MARKED = WATERMARK, WATERMARK
ORDERS_BARE = "the left side (orders) has no watermark"
PAYMENTS_BARE = "the right side (payments) has no watermark"
NO_TIME = "the join condition has no time constraint between the two sides"
LACKING = [
    ("LEFT OUTER", (WATERMARK, ""), IN_TIME, PAYMENTS_BARE, "`watermark:` to the right side (payments)"),
    ("LEFT OUTER", (WATERMARK, ""), f"{SAME} AND o.at = p.at", PAYMENTS_BARE, "the right side (payments)"),
    ("LEFT OUTER", BOTH_MARKED, SAME, NO_TIME, "add a time range"),
    # Spark compares the bound with a watermarked column of the side itself, and frees nothing without one.
    ("LEFT OUTER", ("", WATERMARK), IN_TIME, ORDERS_BARE, "`watermark:` to the left side (orders)"),
    ("RIGHT OUTER", (WATERMARK, ""), IN_TIME, PAYMENTS_BARE, "`watermark:` to the right side (payments)"),
    ("LEFT SEMI", ("", WATERMARK), IN_TIME, ORDERS_BARE, "`watermark:` to the left side (orders)"),
    ("LEFT OUTER", ("", ""), SAME, f"{PAYMENTS_BARE}, {NO_TIME}", "(payments) and add a time range"),
    ("LEFT OUTER", BOTH_MARKED, f"{SAME} AND p.at >= o.at", "how old a row of the left side", "both ends"),
    ("RIGHT OUTER", ("", WATERMARK), IN_TIME, ORDERS_BARE, "`watermark:` to the left side (orders)"),
    ("RIGHT OUTER", BOTH_MARKED, SAME, NO_TIME, "add a time range"),
    ("FULL OUTER", ("", ""), IN_TIME, f"{PAYMENTS_BARE}, {ORDERS_BARE}", "(payments) or the left side"),
    ("FULL OUTER", BOTH_MARKED, SAME, NO_TIME, "add a time range"),
    ("LEFT SEMI", (WATERMARK, ""), IN_TIME, PAYMENTS_BARE, "`watermark:` to the right side (payments)"),
    ("LEFT SEMI", BOTH_MARKED, SAME, NO_TIME, "add a time range"),
]


def _join(kind: str, on: str) -> str:
    return f"FROM orders o {kind} JOIN payments p ON {on}"


@pytest.mark.sampled
@pytest.mark.conformance("JOIN-14")
@pytest.mark.parametrize(("kind", "marks", "on", "lacks", "do"), LACKING)
def test_what_a_join_needs_and_lacks_is_named(
    sandbox: Sandbox, kind: str, marks: tuple[str, str], on: str, lacks: str, do: str
) -> None:
    sql = f"SELECT o.id AS ordered {_join(kind, on)}"
    joining(sandbox, spec(orders=marks[0], payments=marks[1]), sql, "ordered BIGINT")
    arrive(sandbox, "1", orders=[(1, "10:00")], payments=[(1, "10:10")])
    error = refused(sandbox, "paid", "join.constraint", TransformError)
    assert f"a {kind} join of two streams must know when a row of the" in error.what
    assert lacks in error.what
    assert do in error.do


@pytest.mark.conformance("JOIN-14")
def test_a_watermark_that_gets_lost_before_the_join_is_named(sandbox: Sandbox) -> None:
    side = "(SELECT id, at + INTERVAL 1 HOUR AS at FROM payments)"
    sql = f"SELECT o.id AS ordered FROM orders o LEFT OUTER JOIN {side} p ON {IN_TIME}"
    joining(sandbox, BOTH, sql, "ordered BIGINT")
    arrive(sandbox, "1", orders=[(1, "10:00")], payments=[(1, "10:10")])
    error = refused(sandbox, "paid", "join.constraint", TransformError)
    assert "has no watermark (the one on payments.at does not reach the join)" in error.what
    assert "let the watermarked column through, unchanged, on the right side (payments)" in error.do


@pytest.mark.full
@pytest.mark.conformance("JOIN-14")
def test_an_anti_join_of_two_streams_is_refused_and_its_way_out_works(sandbox: Sandbox) -> None:
    joining(sandbox, BOTH, f"SELECT o.id AS ordered {_join('LEFT ANTI', IN_TIME)}", "ordered BIGINT")
    arrive(sandbox, "1", orders=[(1, "10:00"), (2, "10:00")], payments=[(1, "10:10")])
    error = refused(sandbox, "paid", "join.kind", TransformError)
    assert "LEFT ANTI join of two streams is not supported" in error.what
    assert "LEFT OUTER" in error.do

    way_out = f"SELECT o.id AS ordered {_join('LEFT OUTER', IN_TIME)} WHERE p.id IS NULL"
    joining(sandbox, BOTH, way_out, "ordered BIGINT")
    sandbox.run("paid")
    assert out(sandbox) == []
    arrive_and_run(sandbox, "2", orders=[(3, "12:00")], payments=[(3, "12:00")])
    assert out(sandbox) == [(2,)]


@pytest.mark.full
@pytest.mark.conformance("JOIN-19")
@pytest.mark.parametrize("mode", ["update", "complete"])
@pytest.mark.parametrize("counted", [False, True], ids=["join", "aggregation behind it"])
def test_joins_of_two_streams_run_in_append_mode_only(sandbox: Sandbox, mode: str, counted: bool) -> None:
    sql = f"SELECT o.id AS ordered {_join('', IN_TIME)}"
    if counted:
        sql = f"SELECT ordered, count(*) AS n FROM ({sql}) GROUP BY ordered"
    other_mode = BOTH.replace(
        "out.ddl}", f"out.ddl, mode: {mode}{', keys: [ordered]' * (mode == 'update')}}}"
    )
    joining(sandbox, other_mode, sql, "ordered BIGINT" + ", n BIGINT" * counted)
    arrive(sandbox, "1", orders=[(1, "10:00")], payments=[(1, "10:10")])
    error = refused(sandbox, "paid", "join.append-only", TransformError)
    assert f"supported in append mode only, not in {mode} mode" in error.what
    assert "mode: append" in error.do
