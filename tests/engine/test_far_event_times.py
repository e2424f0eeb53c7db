"""Event times that no calendar of Python can hold: the row is malformed, and nothing else waits."""

from __future__ import annotations

import pytest

from tests.support.command_line import drawdown
from tests.support.replays import replayed
from tests.support.sandbox import Sandbox
from tests.support.set_aside import rows

SPEC = """
sources:
  events:
    format: json
    path: landing/events
    schema: events.ddl
    watermark: {column: at, delay: 0 secondsMAX}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl, time_column: day}
state: {partitions: 2}
replay: {interval: 1 day}
"""
FILES = {
    "events_ddl": "id INT, at TIMESTAMP",
    "out_ddl": "id INT, day TIMESTAMP",
    "transform_sql": "SELECT id, date_trunc('DAY', at) AS day FROM events",
}


@pytest.mark.capability("RIGHT-08")
@pytest.mark.parametrize(("max_future", "reason"), [("", "malformed"), (", max_future: 1 day", "future")])
def test_a_row_of_a_far_year_is_set_aside(sandbox: Sandbox, max_future: str, reason: str) -> None:
    sandbox.pipeline("hourly", SPEC.replace("MAX", max_future), **FILES)
    far = ["+12024-01-01T00:00:00Z", "-0100-01-01T00:00:00Z"]
    good = [{"id": 1, "at": "2024-01-01T10:00:00Z"}, {"id": 2, "at": "2024-01-03T10:00:00Z"}]
    sandbox.land_json("landing/events/a.json", [*good, *({"id": 3, "at": at} for at in far)])
    run = sandbox.run("hourly")
    assert (run.counts.read, run.counts.fed) == (4, 2)
    assert sorted(row.reasons for row in rows(sandbox)) == sorted([(reason,), ("malformed",)])
    replayed(sandbox, "2024-01-01", "2024-01-02")
    assert [row[0] for row in sandbox.delta("tables/out")] == [1, 2]
    for words in ("show hourly", "drop hourly --why far --yes"):
        done = drawdown(sandbox.root, "quarantine", *words.split())
        assert done.returncode == 0, done.stdout + done.stderr
    done = drawdown(sandbox.root, "upkeep", "hourly")
    assert done.returncode == 0, done.stdout + done.stderr
