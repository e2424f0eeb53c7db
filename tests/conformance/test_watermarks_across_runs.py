"""WM: watermarks that go on from run to run, of one source and of two that take turns."""

from __future__ import annotations

import pytest

from drawdown.errors import RefusedError
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox
from tests.support.timed import EVENTS, HOURLY_FILES, at, land, table

TWO = """
sources:
  a: {format: json, path: landing/a, schema: event.ddl, watermark: {column: at, delay: 10 minutes}}
  b: {format: json, path: landing/b, schema: event.ddl, watermark: {column: at, delay: 10 minutes}}
transform: transform.sql
watermark_policy: POLICY
sink: {format: delta, path: tables/out, schema: out.ddl}
state: {partitions: 2}
"""
UNION = """
    SELECT window.start AS hour, count(*) AS n
    FROM (SELECT at FROM a UNION ALL SELECT at FROM b) GROUP BY window(at, '1 hour')
"""
LEFT_OUTER = """
    SELECT a.at AS at, b.at AS matched
    FROM a LEFT JOIN b ON a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 20 MINUTES
"""


def _two_sources(sandbox: Sandbox, policy: str) -> None:
    spec = TWO.replace("POLICY", policy)
    sandbox.pipeline("turns", spec, **{**HOURLY_FILES, "transform_sql": UNION})
    for source in "ab":
        (sandbox.storage / "landing" / source).mkdir(parents=True, exist_ok=True)


@pytest.mark.conformance("WM-05")
def test_rows_within_the_delay_are_never_dropped(sandbox: Sandbox) -> None:
    """Each run brings a row just newer than the watermark that the runs before it left."""
    sandbox.pipeline("hourly", EVENTS, **HOURLY_FILES)
    for file, rows in enumerate([("12:00",), ("11:50:00.001", "12:05"), ("11:55:00.001", "12:10")]):
        land(sandbox, "events", str(file), *rows)
        assert sandbox.run("hourly").counts.late == 0
    assert table(sandbox) == [("11:00", 2)]


@pytest.mark.sampled
@pytest.mark.conformance("WM-08")
@pytest.mark.parametrize(("policy", "other", "mark"), [("min", "max", "11:00"), ("max", "min", "12:20")])
def test_the_watermark_policy_is_frozen(sandbox: Sandbox, policy: str, other: str, mark: str) -> None:
    _two_sources(sandbox, policy)
    land(sandbox, "a", "1", "10:30", "11:00")
    land(sandbox, "b", "1", "10:40")
    sandbox.run("turns")
    land(sandbox, "a", "2", "11:10")
    land(sandbox, "b", "2", "12:30")
    run = sandbox.run("turns")
    assert run.watermark == at(mark)
    assert table(sandbox) == ([("10:00", 2)] if policy == "min" else [("10:00", 2), ("11:00", 2)])

    _two_sources(sandbox, other)
    land(sandbox, "a", "3", "14:00")
    error = refused(sandbox, "turns", "checkpoint.changed", RefusedError)
    assert f"'{policy}'" in error.what
    assert f"'{other}'" in error.what


# What the sources bring in turn; the table and the watermark after each run, by policy.
TURNS = [
    ("a", "10:30 x", "10:50 y"),
    ("b", "10:45 x", "11:30 z"),
    ("a", "11:25 z", "12:15 w"),
    ("b", "12:10 v", "12:30 w"),
]
MARKS = {"min": (None, "10:40", "11:20", "12:05"), "max": ("10:40", "11:20", "12:05", "12:20")}
HOURS = [("10:00", 3), ("11:00", 2)]
# 10:50 has no match, which is known once the watermark has passed 11:10.
PAIRS = [("10:30", "10:45"), ("10:50", None), ("11:25", "11:30"), ("12:15", "12:30")]


@pytest.mark.sampled
@pytest.mark.conformance("WM-09")
@pytest.mark.parametrize(
    ("sql", "ddl", "policy", "tables"),
    [
        (UNION, "hour TIMESTAMP, n BIGINT", "min", ([], [], HOURS[:1], HOURS)),
        (UNION, "hour TIMESTAMP, n BIGINT", "max", ([], HOURS[:1], HOURS, HOURS)),
        (LEFT_OUTER, "at TIMESTAMP, matched TIMESTAMP", "min", ([], PAIRS[:1], PAIRS[:3], PAIRS)),
        (LEFT_OUTER, "at TIMESTAMP, matched TIMESTAMP", "max", ([], PAIRS[:2], PAIRS[:3], PAIRS)),
    ],
    ids=["union, min", "union, max", "left outer, min", "left outer, max"],
)
def test_sources_that_take_turns_close_windows_in_the_run_that_closes_them(
    sandbox: Sandbox, sql: str, ddl: str, policy: str, tables: tuple[list[tuple[str, object]], ...]
) -> None:
    """tests/faults/test_carriers.py does the same over ten runs, for more shapes, with crashes."""
    _two_sources(sandbox, policy)
    sandbox.pipeline("turns", TWO.replace("POLICY", policy), out_ddl=ddl, transform_sql=sql)
    for number, (source, *rows) in enumerate(TURNS):
        land(sandbox, source, str(number), *rows)
        run = sandbox.run("turns")
        mark = MARKS[policy][number]
        assert run.watermark == (at(mark) if mark else None)
        assert table(sandbox) == tables[number]
        assert run.counts.late == 0
