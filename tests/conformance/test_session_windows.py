"""WIN: session windows."""

from __future__ import annotations

import pytest

from drawdown.errors import TransformError
from drawdown.query.bounded import bounded_output
from drawdown.spark.session import query_session
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox
from tests.support.timed import EVENTS, land, land_and_run, table
from tests.support.verdicts import verdicts

EVENT = "at TIMESTAMP, k STRING"
OUT = "k STRING, first TIMESTAMP, until TIMESTAMP, n BIGINT"
SESSIONS = """
    SELECT k, session_window.start AS first, session_window.end AS until, count(*) AS n
    FROM events GROUP BY session_window(at, '5 minutes'), k
"""
MERGE = "spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition"


@pytest.mark.full
@pytest.mark.conformance("WIN-03")
def test_a_session_ends_a_gap_after_its_last_row(sandbox: Sandbox) -> None:
    """A row at the very end of a session, such as 10:09, still belongs to it."""
    sandbox.pipeline("sessions", EVENTS, event_ddl=EVENT, out_ddl=OUT, transform_sql=SESSIONS)
    land_and_run(sandbox, "sessions", "1", "10:00 a", "10:04 a", "10:09 a", "10:02 b", "10:30 b")
    closed = [("a", "10:00", "10:14", 3), ("b", "10:02", "10:07", 1)]
    assert table(sandbox) == closed

    land_and_run(sandbox, "sessions", "2", "10:25:01 b", "10:50 a")
    assert table(sandbox) == [*closed, ("b", "10:25:01.000000", "10:35", 2)]


@pytest.mark.conformance("WIN-04")
def test_rows_whose_computed_gap_is_not_positive_are_dropped_and_counted(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "sessions",
        EVENTS,
        event_ddl=EVENT,
        out_ddl=OUT.removeprefix("k STRING, "),
        transform_sql="""
            SELECT session_window.start AS first, session_window.end AS until, count(*) AS n
            FROM events GROUP BY substr(k, 1, 1), session_window(at, CASE k
                WHEN 'a-long' THEN '30 minutes' WHEN 'a-short' THEN '5 minutes'
                WHEN 'a-zero' THEN '0 seconds' WHEN 'a-negative' THEN '-5 minutes' END)
        """,
    )
    rows = ["10:00 a-long", "10:04 a-short", "10:05 a-zero", "10:06 a-negative", "10:07 a-null"]
    land(sandbox, "events", "1", *rows, "10:40 a-short")
    assert "sessionless" in verdicts(sandbox, "sessions")["window.dynamic-gap"].what
    first = sandbox.run("sessions")
    assert table(sandbox) == [("10:00", "10:30", 2)]
    assert (first.counts.fed, first.counts.sessionless, first.counts.late) == (6, 3, 0)

    second = land_and_run(sandbox, "sessions", "2", "10:41 a-zero", "11:00 a-short")
    assert table(sandbox) == [("10:00", "10:30", 2), ("10:40", "10:45", 1)]
    assert (second.counts.fed, second.counts.sessionless, second.counts.late) == (2, 1, 0)


@pytest.mark.full
@pytest.mark.conformance("WIN-05")
def test_sessions_cannot_be_updated(sandbox: Sandbox) -> None:
    spec = EVENTS.replace("out.ddl}", "out.ddl, mode: update, keys: [k, first]}")
    sandbox.pipeline("sessions", spec, event_ddl=EVENT, out_ddl=OUT, transform_sql=SESSIONS)
    land(sandbox, "events", "1", "10:00 a", "11:00 a")
    error = refused(sandbox, "sessions", "window.session-update", TransformError)
    assert "session windows are not supported in update mode" in error.what
    assert "mode: append" in error.do

    sandbox.pipeline("sessions", EVENTS)
    sandbox.run("sessions")
    assert table(sandbox) == [("a", "10:00", "10:05", 1)]


@pytest.mark.full
@pytest.mark.conformance("WIN-06")
def test_a_session_window_alone_is_for_bounded_data(sandbox: Sandbox) -> None:
    pipeline = sandbox.pipeline(
        "sessions",
        EVENTS,
        event_ddl=EVENT,
        out_ddl="first TIMESTAMP, n BIGINT",
        transform_sql="""
            SELECT session_window.start AS first, count(*) AS n
            FROM events GROUP BY session_window(at, '5 minutes')
        """,
    )
    land(sandbox, "events", "1", "10:00 a", "10:04 b", "11:00 a")
    error = refused(sandbox, "sessions", "window.session-alone", TransformError)
    assert "group by session_window alone" in error.what
    assert "group by a column too" in error.do

    assert sandbox.spark is not None
    session = query_session(sandbox.spark, pipeline)
    events = session.read.schema(EVENT).json(str(sandbox.storage / "landing/events"))
    with bounded_output(session, sandbox.project, pipeline, {"events": events}) as output:
        rows = sorted((f"{row.first:%H:%M}", row.n) for row in output.collect())
    assert rows == [("10:00", 2), ("11:00", 1)]


@pytest.mark.full
@pytest.mark.conformance("WIN-07")
@pytest.mark.parametrize("merge", ["true", "false"])
def test_merging_sessions_before_the_shuffle_changes_no_row(sandbox: Sandbox, merge: str) -> None:
    spec = EVENTS + f"conf: {{{MERGE}: {merge}}}\n"
    pipeline = sandbox.pipeline("sessions", spec, event_ddl=EVENT, out_ddl=OUT, transform_sql=SESSIONS)
    assert sandbox.spark is not None
    assert query_session(sandbox.spark, pipeline).conf.get(MERGE) == merge
    for file in ("1", "2"):
        land(sandbox, "events", file, "10:00 a", "10:04 a", "10:02 b", f"10:0{file} a")
    sandbox.run("sessions")
    assert table(sandbox) == []

    land_and_run(sandbox, "sessions", "3", "10:08 a", "10:09 b", "10:30 a")
    closed = [("a", "10:00", "10:13", 7), ("b", "10:02", "10:07", 2), ("b", "10:09", "10:14", 1)]
    assert table(sandbox) == closed


@pytest.mark.full
@pytest.mark.conformance("WIN-10")
def test_a_session_over_three_runs_closes_once_with_its_own_bounds(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "sessions", EVENTS, event_ddl=EVENT, out_ddl=OUT, transform_sql=SESSIONS.replace("5 min", "30 min")
    )
    for run, rows in enumerate([("10:00 a", "10:20 a"), ("10:40 a",), ("11:05 a", "11:10 b")]):
        land_and_run(sandbox, "sessions", str(run), *rows)
        assert table(sandbox) == []

    land_and_run(sandbox, "sessions", "last", "12:30 b")
    assert table(sandbox) == [("a", "10:00", "11:35", 4), ("b", "11:10", "11:40", 1)]
