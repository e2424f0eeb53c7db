"""WM: what a watermark holds back, lets through, drops and counts."""

from __future__ import annotations

import pytest

from drawdown.errors import TransformError
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox
from tests.support.timed import EVENTS, HOURLY_FILES, at, land, land_and_run, table
from tests.support.verdicts import verdicts

UPDATE = EVENTS.replace("out.ddl}", "out.ddl, mode: update, keys: [hour]}")
COMPLETE = EVENTS.replace("out.ddl}", "out.ddl, mode: complete}")


@pytest.mark.full
@pytest.mark.conformance("WM-01")
def test_append_emits_a_window_only_once_the_watermark_passed_its_end(sandbox: Sandbox) -> None:
    sandbox.pipeline("hourly", EVENTS, **HOURLY_FILES)
    for file, row in enumerate(["10:30", "11:05", "11:09:59.999"]):
        land_and_run(sandbox, "hourly", str(file), row)
        assert table(sandbox) == []
    run = land_and_run(sandbox, "hourly", "last", "11:10")
    assert run.watermark == at("11:00")
    assert table(sandbox) == [("10:00", 1)]


@pytest.mark.full
@pytest.mark.conformance("WM-02")
def test_update_refreshes_a_window_until_the_watermark_passed_its_end(sandbox: Sandbox) -> None:
    sandbox.pipeline("hourly", UPDATE, **HOURLY_FILES)
    land_and_run(sandbox, "hourly", "1", "10:30")
    assert table(sandbox) == [("10:00", 1)]

    land_and_run(sandbox, "hourly", "2", "10:45", "11:20")
    assert table(sandbox) == [("10:00", 2), ("11:00", 1)]

    run = land_and_run(sandbox, "hourly", "3", "10:50", "11:25")
    assert table(sandbox) == [("10:00", 2), ("11:00", 2)]
    assert (run.counts.late, run.counts.late_groups) == (1, 1)


@pytest.mark.full
@pytest.mark.conformance("WM-03")
def test_complete_keeps_every_window_and_every_row(sandbox: Sandbox) -> None:
    sandbox.pipeline("hourly", COMPLETE, **HOURLY_FILES)
    land_and_run(sandbox, "hourly", "1", "10:30", "13:00")
    land_and_run(sandbox, "hourly", "2", "13:05")
    assert table(sandbox) == [("10:00", 1), ("13:00", 2)]

    run = land_and_run(sandbox, "hourly", "3", "10:45")
    assert table(sandbox) == [("10:00", 2), ("13:00", 2)]
    assert (run.counts.late, run.counts.late_groups, run.watermark) == (1, 0, at("12:55"))


@pytest.mark.conformance("WM-04")
def test_late_rows_are_dropped_and_counted_at_the_source_and_as_groups(sandbox: Sandbox) -> None:
    """Three rows are not newer than the watermark of 12:00: two of a closed window, which Spark sees as one
    group, and one whose window is open and takes it."""
    sandbox.pipeline("hourly", EVENTS, **HOURLY_FILES)
    first = land_and_run(sandbox, "hourly", "1", "10:00", "12:10")
    assert (first.counts.late, first.counts.late_groups, first.watermark) == (0, 0, at("12:00"))

    second = land_and_run(sandbox, "hourly", "2", "10:10", "10:20", "12:00", "12:00:00.001", "13:10")
    assert table(sandbox) == [("10:00", 1), ("12:00", 3)]
    assert (second.counts.read, second.counts.late, second.counts.late_groups) == (5, 3, 1)
    with sandbox.metastore() as metastore:
        batches = metastore.batches("hourly", 1)
    assert [batch.by_source["events"]["late"] for batch in batches] == [0, 0, 3, 0]
    assert [batch.watermark for batch in batches[2:]] == [at("12:00"), at("12:00")]


@pytest.mark.conformance("WM-06")
def test_a_batch_without_data_flushes_what_the_drain_closed(sandbox: Sandbox) -> None:
    sandbox.pipeline("hourly", EVENTS, **HOURLY_FILES)
    land_and_run(sandbox, "hourly", "1", "10:30", "11:10")
    assert table(sandbox) == [("10:00", 1)]
    land_and_run(sandbox, "hourly", "2", "12:10")
    assert table(sandbox) == [("10:00", 1), ("11:00", 1)]
    with sandbox.metastore() as metastore:
        batches = metastore.batches("hourly", 1)
    assert [(batch.counts.read, batch.counts.staged) for batch in batches] == [(2, 0), (0, 1), (1, 0), (0, 1)]


UNDECLARED = EVENTS.replace(", watermark: {column: at, delay: 10 minutes}", "")
PYTHON = "transform: transform.py"
MISPLACED = {
    "on another column": (
        EVENTS,
        "SELECT window.start AS hour, count(*) AS n FROM events GROUP BY window(booked_at, '1 hour')",
        "watermark.other-column",
        "the aggregation groups by",
        "such as window(at, '1 hour')",
    ),
    "lost on the way": (
        EVENTS,
        "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM events GROUP BY date_trunc('hour', at)",
        "watermark.other-column",
        "the watermark is on `at`",
        "such as window(at, '1 hour')",
    ),
    "after the aggregation": (
        UNDECLARED,
        "rows.groupBy('at').count().withWatermark('at', '10 minutes')",
        "watermark.after-aggregation",
        "after the aggregation, where it is too late",
        "declare `watermark: {column: at, delay: ...}` at the source",
    ),
    "once more": (
        EVENTS,
        "rows.withWatermark('booked_at', '1 hour').groupBy('booked_at').count()",
        "watermark.twice",
        "beside the one declared for events",
        "take withWatermark out of the transform",
    ),
}


@pytest.mark.sampled
@pytest.mark.conformance("WM-07")
@pytest.mark.parametrize("where", MISPLACED)
def test_a_misplaced_watermark_is_refused_with_the_fix_named(sandbox: Sandbox, where: str) -> None:
    spec, code, error_id, what, do = MISPLACED[where]
    python = not code.startswith("SELECT")
    returned = f"{code}.toDF('hour', 'n')" if python else ""
    sandbox.pipeline(
        "hourly",
        spec.replace("transform: transform.sql", PYTHON) if python else spec,
        event_ddl="at TIMESTAMP, booked_at TIMESTAMP, k STRING",
        out_ddl="hour TIMESTAMP, n BIGINT",
        transform_sql=code,
        transform_py=f"def transform(sources):\n    rows = sources['events']\n    return {returned}\n",
    )
    land(sandbox, "events", "1", "10:30", "11:10")
    error = refused(sandbox, "hourly", error_id, TransformError)
    assert what in error.what
    assert do in error.do

    sandbox.pipeline("hourly", EVENTS, transform_sql=HOURLY_FILES["transform_sql"])
    sandbox.run("hourly")
    assert table(sandbox) == [("10:00", 1)], "the fix works"


@pytest.mark.conformance("WM-10")
@pytest.mark.fault("F27", "delta")
def test_a_row_of_the_far_future_never_reaches_the_watermark(sandbox: Sandbox) -> None:
    spec = EVENTS.replace("10 minutes}", "10 minutes, max_future: 1 day}")
    sandbox.pipeline("hourly", spec, **HOURLY_FILES)
    future = {"at": "2999-01-01T00:00:00Z", "k": "broken clock"}
    land(sandbox, "events", "1", "10:30", "11:10")
    sandbox.land_json("landing/events/future.json", [future])
    first = sandbox.run("hourly")
    assert (first.counts.read, first.counts.future, first.counts.fed) == (3, 1, 2)
    assert first.watermark == at("11:00")

    second = land_and_run(sandbox, "hourly", "2", "11:40", "12:10")
    assert (second.counts.late, second.watermark) == (0, at("12:00"))
    assert table(sandbox) == [("10:00", 1), ("11:00", 2)]
    aside = [(row["reasons"], row["event_time"].year) for row in sandbox.quarantined("hourly")]
    assert aside == [(["future"], 2999)]
    assert "watermark.in-transform" not in verdicts(sandbox, "hourly")
