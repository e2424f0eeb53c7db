"""WIN: event-time windows."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.support.workspace import Workspace

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, watermark: {column: at, delay: 10 minutes}}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
state: {partitions: 2}
"""


def _rows(*times: str) -> list[dict[str, str]]:
    return [{"at": f"2024-01-01T{time}Z", "k": "a"} for time in times]


@pytest.mark.conformance("WIN-01")
def test_tumbling_windows_come_out_once_when_they_are_closed(workspace: Workspace) -> None:
    workspace.pipeline(
        "hourly",
        SPEC,
        event_ddl="at TIMESTAMP, k STRING",
        out_ddl="hour TIMESTAMP, n BIGINT",
        transform_sql="SELECT window.start AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour')",
    )
    workspace.land_json("landing/events/1.json", _rows("10:05:00", "10:59:59.999", "11:00:00", "11:30:00"))
    workspace.run("hourly")
    assert [n for _, n in workspace.delta("tables/out")] == [2]

    workspace.land_json("landing/events/2.json", _rows("11:45:00", "12:15:00"))
    workspace.run("hourly")
    rows = [(hour.replace(tzinfo=None), n) for hour, n in workspace.delta("tables/out")]
    assert rows == [(datetime(2024, 1, 1, 10), 2), (datetime(2024, 1, 1, 11), 3)]
