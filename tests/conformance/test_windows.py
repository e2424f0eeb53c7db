"""WIN: tumbling and sliding windows, their time, and windows over windows."""

from __future__ import annotations

import pytest

from tests.support.sandbox import Sandbox
from tests.support.timed import EVENTS, HOURLY_FILES, land_and_run, table

EVENT = "at TIMESTAMP, k STRING"


@pytest.mark.conformance("WIN-01")
def test_tumbling_windows_come_out_once_when_they_are_closed(sandbox: Sandbox) -> None:
    sandbox.pipeline("hourly", EVENTS, **HOURLY_FILES)
    land_and_run(sandbox, "hourly", "1", "10:05", "10:59:59.999", "11:00", "11:30")
    assert table(sandbox) == [("10:00", 2)]

    land_and_run(sandbox, "hourly", "2", "11:45", "12:15")
    assert table(sandbox) == [("10:00", 2), ("11:00", 3)]


@pytest.mark.full
@pytest.mark.conformance("WIN-02")
def test_a_row_is_in_each_sliding_window_that_covers_it(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "sliding",
        EVENTS,
        event_ddl=EVENT,
        out_ddl="first TIMESTAMP, until TIMESTAMP, n BIGINT",
        transform_sql="""
            SELECT window.start AS first, window.end AS until, count(*) AS n
            FROM events GROUP BY window(at, '30 minutes', '15 minutes')
        """,
    )
    land_and_run(sandbox, "sliding", "1", "10:05", "10:20", "10:50")
    closed = [("09:45", "10:15", 1), ("10:00", "10:30", 2)]
    assert table(sandbox) == closed

    land_and_run(sandbox, "sliding", "2", "10:44", "11:20")
    assert table(sandbox) == [*closed, ("10:15", "10:45", 2), ("10:30", "11:00", 2)]


@pytest.mark.full
@pytest.mark.conformance("WIN-08")
def test_window_time_is_the_last_moment_of_a_window(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "timed",
        EVENTS,
        event_ddl=EVENT,
        out_ddl="at TIMESTAMP, n BIGINT",
        transform_sql="""
            SELECT window_time(hour) AS at, n
            FROM (SELECT window(at, '1 hour') AS hour, count(*) AS n FROM events GROUP BY hour)
        """,
    )
    land_and_run(sandbox, "timed", "1", "10:05", "11:10")
    assert table(sandbox) == [("10:59:59.999999", 1)]

    land_and_run(sandbox, "timed", "2", "11:15", "12:10")
    assert table(sandbox) == [("10:59:59.999999", 1), ("11:59:59.999999", 2)]


@pytest.mark.full
@pytest.mark.conformance("WIN-09")
def test_hours_are_made_of_five_minute_windows_in_the_same_run(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "stacked",
        EVENTS,
        event_ddl=EVENT,
        out_ddl="hour TIMESTAMP, busy_parts BIGINT, n BIGINT",
        transform_sql="""
            SELECT window.start AS hour, count(*) AS busy_parts, sum(n) AS n
            FROM (
                SELECT window_time(part) AS at, n
                FROM (SELECT window(at, '5 minutes') AS part, count(*) AS n FROM events GROUP BY part)
            )
            GROUP BY window(at, '1 hour')
        """,
    )
    land_and_run(sandbox, "stacked", "1", "10:01", "10:04", "10:07", "11:01")
    assert table(sandbox) == []

    land_and_run(sandbox, "stacked", "2", "10:59", "11:02", "11:56", "12:10")
    assert table(sandbox) == [("10:00", 3, 4), ("11:00", 2, 3)]
