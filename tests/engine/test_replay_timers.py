"""A backfill of a state function: its timers fire as they did in the live query, though no event follows."""

from __future__ import annotations

import pytest

from tests.support.replays import replayed
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events:
    format: json
    path: landing/events
    schema: "at TIMESTAMP, k STRING"
    watermark: {column: at, delay: 10 minutes}
transform: transform.py
sink: {format: delta, path: tables/quiet, schema: out.ddl, time_column: closed}
state: {partitions: 2}
replay: {interval: 1 hour, lookback: 1 hour, lookahead: 1 hour}
"""
QUIET = """
import pandas as pd
from pyspark.sql.streaming.state import GroupStateTimeout as Timeout

def close(key, frames, state):
    if state.hasTimedOut:
        n, closed = state.get
        state.remove()
        yield pd.DataFrame({"k": [key[0]], "n": [n], "closed": [pd.Timestamp(closed, unit="ms")]})
        return
    times = [at for frame in frames for at in frame["at"]]
    n = len(times) + (state.get[0] if state.exists else 0)
    closed = int(max(times).timestamp() * 1000) + 1_800_000
    state.update((n, closed))
    state.setTimeoutTimestamp(closed)

def transform(sources):
    return sources["events"].groupBy("k").applyInPandasWithState(
        close,
        "k STRING, n BIGINT, closed TIMESTAMP",
        "n BIGINT, closed BIGINT",
        "append",
        Timeout.EventTimeTimeout,
    )
"""


@pytest.mark.capability("RIGHT-09")
def test_a_timer_fires_though_the_lookahead_has_no_events(sandbox: Sandbox) -> None:
    sandbox.pipeline("quiet", SPEC, out_ddl="k STRING, n BIGINT, closed TIMESTAMP", transform_py=QUIET)
    events = ["10:00 a", "10:10 a", "10:20 b"]
    rows = [{"at": f"2024-01-01T{e.split()[0]}:00Z", "k": e.split()[1]} for e in events]
    sandbox.land_json("landing/events/1.json", rows, mtime=1)
    sandbox.land_json("landing/events/2.json", [{"at": "2024-01-01T20:00:00Z", "k": "later"}], mtime=2)
    sandbox.run("quiet")
    live = sandbox.delta("tables/quiet")
    assert [(k, n) for k, n, _ in live] == [("a", 2), ("b", 1)]
    replayed(sandbox, "2024-01-01T10:00:00Z", "2024-01-01T11:00:00Z", "quiet")
    assert sandbox.delta("tables/quiet") == live
