"""STATE: state of the user's own functions, their timers, and LIMIT."""

from __future__ import annotations

from typing import Any

import pytest

from drawdown.errors import TransformError
from drawdown.recovery.spark_state_reader import StateReader
from drawdown.storage import Storage
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events: {{format: json, path: landing/events, schema: event.ddl{source}}}
transform: transform.py
sink: {{format: delta, path: tables/out, schema: out.ddl{sink}}}
state: {{partitions: 2}}
"""
EVENT = "at TIMESTAMP, k STRING"
WATERMARK = ", watermark: {column: at, delay: 10 minutes}"

# Counts the rows of a key; a key that hears nothing is closed by its timeout.
COUNT_UNTIL_QUIET = """
import pandas as pd
from pyspark.sql.streaming.state import GroupStateTimeout as Timeout

def count(key, frames, state):
    if state.hasTimedOut:
        (n,) = state.get
        state.remove()
        yield pd.DataFrame({{"k": [key[0]], "n": [n], "why": ["quiet"]}})
        return
    times = [at for frame in frames for at in frame["at"]]
    n = len(times) + (state.get[0] if state.exists else 0)
    state.update((n,))
    {set_timeout}
    yield pd.DataFrame({{"k": [key[0]], "n": [n], "why": ["data"]}})

def transform(sources):
    return sources["events"].groupBy("k").applyInPandasWithState(
        count, "k STRING, n BIGINT, why STRING", "n BIGINT", "{mode}", Timeout.{timeout}
    )
"""

HALF_AN_HOUR = "state.setTimeoutTimestamp(int(max(times).timestamp() * 1000) + 1_800_000)"


def _rows(*events: str) -> list[dict[str, str]]:
    """Events as "10:05 a"."""
    return [{"at": f"2024-01-01T{e.split()[0]}:00Z", "k": e.split()[1]} for e in events]


@pytest.mark.sampled
@pytest.mark.conformance("STATE-01")
@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_function_keeps_state_and_its_timeouts_fire_in_a_later_run(sandbox: Sandbox, mode: str) -> None:
    by_event_time = mode == "append"
    code = COUNT_UNTIL_QUIET.format(
        mode=mode,
        timeout="EventTimeTimeout" if by_event_time else "ProcessingTimeTimeout",
        # A timeout of one millisecond is over in any batch but its own.
        set_timeout=HALF_AN_HOUR if by_event_time else "state.setTimeoutDuration(1)",
    )
    sink = "" if by_event_time else ", mode: update, keys: [k, why]"
    sandbox.pipeline(
        "quiet",
        SPEC.format(source=WATERMARK if by_event_time else "", sink=sink),
        event_ddl=EVENT,
        out_ddl="k STRING, n BIGINT, why STRING",
        transform_py=code,
    )
    sandbox.land_json("landing/events/1.json", _rows("10:00 a", "10:01 a", "10:02 b"))
    sandbox.run("quiet")
    assert ("a", 2, "data") in sandbox.delta("tables/out")

    if by_event_time:
        sandbox.land_json("landing/events/2.json", _rows("10:20 a", "12:00 c"))
        sandbox.run("quiet")
        quiet = [row for row in sandbox.delta("tables/out") if row[2] == "quiet"]
        assert quiet == [("a", 3, "quiet"), ("b", 1, "quiet")]
    else:
        sandbox.run("quiet")  # no new data: a pending timeout is a reason to run
        assert sandbox.delta("tables/out") == [
            ("a", 2, "data"), ("a", 2, "quiet"), ("b", 1, "data"), ("b", 1, "quiet"),
        ]  # fmt: skip


# What a key has been seen with: how often (value), when (list), and a note that lives for a moment (map with
# a time to live). It starts from the rows of a static source, and a timer reports once.
SEEN = """
from collections.abc import Iterator
import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

OUT = "k STRING, n BIGINT, times INT, notes INT, why STRING"

class Seen(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        self.count = handle.getValueState("count", "n BIGINT")
        self.times = handle.getListState("times", "at TIMESTAMP")
        self.notes = handle.getMapState("notes", "name STRING", "value STRING", ttlDurationMs=1)

    def counted(self):
        return self.count.get()[0] if self.count.exists() else 0

    def row(self, key, why):
        notes = len(list(self.notes.keys()))
        return self.as_output(key[0], self.counted(), len(list(self.times.get())), notes, why)

    def add(self, key, times, timers):
        known = self.row(key, "before")
        self.count.update((self.counted() + len(times),))
        self.times.appendList([(at,) for at in times])
        self.notes.updateValue(("last",), ("seen",))
        self.handle.registerTimer(timers.getCurrentProcessingTimeInMs() + 1)
        yield known
        yield self.row(key, "data")

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        yield self.row(key, "timer")

    def close(self):
        pass

class SeenRows(Seen):
    def as_output(self, *values):
        return Row(**dict(zip(("k", "n", "times", "notes", "why"), values)))
    def handleInputRows(self, key, rows, timerValues):
        yield from self.add(key, [row.at for row in rows], timerValues)
    def handleInitialState(self, key, initialState, timerValues):
        self.count.update((initialState.n,))

class SeenPandas(Seen):
    def as_output(self, *values):
        return pd.DataFrame({{name: [v] for name, v in zip(("k", "n", "times", "notes", "why"), values)}})
    def handleInputRows(self, key, rows, timerValues):
        yield from self.add(key, [at for f in rows for at in f["at"].dt.to_pydatetime()], timerValues)
    def handleInitialState(self, key, initialState, timerValues):
        self.count.update((int(initialState["n"].iloc[0]),))

def transform(sources):
    known = sources["known"].groupBy("k")
    grouped = sources["events"].groupBy("k")
    if "{api}" == "rows":
        return grouped.transformWithState(SeenRows(), OUT, "append", "processingTime", known)
    return grouped.transformWithStateInPandas(SeenPandas(), OUT, "append", "processingTime", known)
"""


@pytest.mark.full
@pytest.mark.conformance("STATE-02")
@pytest.mark.parametrize("api", ["rows", "pandas"])
def test_a_processor_keeps_values_lists_maps_and_timers(sandbox: Sandbox, api: str) -> None:
    known = "\n  known: {format: json, path: reference/known, schema: known.ddl, static: true}"
    sandbox.pipeline(
        "seen",
        SPEC.format(source="", sink="").replace("\ntransform:", known + "\ntransform:"),
        event_ddl=EVENT,
        known_ddl="k STRING, n BIGINT",
        out_ddl="k STRING, n BIGINT, times INT, notes INT, why STRING",
        transform_py=SEEN.format(api=api),
    )
    sandbox.land_json("reference/known/1.json", [{"k": "a", "n": 100}])
    sandbox.land_json("landing/events/1.json", _rows("10:00 a", "10:01 a", "10:02 b"))
    sandbox.run("seen")
    assert {row for row in sandbox.delta("tables/out") if row[4] != "timer"} == {
        ("a", 100, 0, 0, "before"), ("a", 102, 2, 1, "data"),
        ("b", 0, 0, 0, "before"), ("b", 1, 1, 1, "data"),
    }  # fmt: skip

    # The timers of the first run, then the new row: the note of the first run has expired.
    sandbox.land_json("landing/events/2.json", _rows("10:03 a"))
    sandbox.run("seen")
    rows = sandbox.delta("tables/out")
    assert ("b", 1, 1, 0, "timer") in rows
    assert ("a", 102, 2, 0, "before") in rows
    assert ("a", 103, 3, 1, "data") in rows

    # What `drawdown state` shows of it: a store for each variable, and the timers.
    assert sandbox.spark is not None
    storage = Storage(sandbox.project.storage_root)
    reader = StateReader(sandbox.spark.newSession(), storage, "_drawdown/seen/checkpoint-1")
    kept = {store.store: store.keys for store in reader.stores()}
    assert list(kept) == ["count", "notes", "times", "timers"]
    assert (kept["count"], kept["times"]) == (2, 4)
    [row] = reader.read(0, "count", '{"k": "a"}', 20)
    assert row["value"] == {"n": 103}


CHAIN = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

class Quarters(StatefulProcessor):
    \"\"\"One row for every quarter of an hour of a key, when the watermark has passed it.\"\"\"
    def init(self, handle):
        self.handle = handle
        self.counts = handle.getMapState("counts", "until BIGINT", "n BIGINT")
    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            until = (int(row.at.timestamp()) // 900 + 1) * 900
            n = self.counts.getValue((until,))[0] if self.counts.containsKey((until,)) else 0
            self.counts.updateValue((until,), (n + row.n,))
            self.handle.registerTimer(until * 1000)
        return iter(())
    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        import datetime
        until = expiredTimerInfo.getExpiryTimeInMs() // 1000
        (n,) = self.counts.getValue((until,))
        self.counts.removeKey((until,))
        at = datetime.datetime.fromtimestamp(until - 1)
        yield Row(at=at, k=key[0], n=n)
    def close(self):
        pass

class Hours(Quarters):
    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            until = (int(row.at.timestamp()) // 3600 + 1) * 3600
            n = self.counts.getValue((until,))[0] if self.counts.containsKey((until,)) else 0
            self.counts.updateValue((until,), (n + row.n,))
            self.handle.registerTimer(until * 1000)
        return iter(())

OUT = "at TIMESTAMP, k STRING, n BIGINT"

def transform(sources):
    quarters = sources["events"].selectExpr("at", "k", "1L AS n").groupBy("k").transformWithState(
        Quarters(), OUT, "append", "eventTime", eventTimeColumnName="at"
    )
    return quarters.groupBy("k").transformWithState(
        Hours(), OUT, "append", "eventTime", eventTimeColumnName="at"
    )
"""


@pytest.mark.full
@pytest.mark.conformance("STATE-03")
def test_one_processor_behind_another_sees_the_rows_that_the_first_lets_go(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "chain",
        SPEC.format(source=WATERMARK, sink=""),
        event_ddl=EVENT,
        out_ddl="at TIMESTAMP, k STRING, n BIGINT",
        transform_py=CHAIN,
    )
    sandbox.land_json("landing/events/1.json", _rows("10:05 a", "10:10 a", "10:50 a", "10:55 b"))
    sandbox.run("chain")
    assert sandbox.delta("tables/out") == []

    sandbox.land_json("landing/events/2.json", _rows("10:58 a", "13:00 c"))
    sandbox.run("chain")
    assert [(f"{at:%H:%M}", k, n) for at, k, n in sandbox.delta("tables/out")] == [
        ("10:59", "a", 4), ("10:59", "b", 1),
    ]  # fmt: skip


CHAINED = """
from pyspark.sql import functions as F
{function}
plain = transform

def transform(sources):
    return plain(sources).groupBy("why").agg(F.count("*").alias("keys"))
"""
SECOND = """
sources:
  closed: {format: delta, path: tables/out}
transform: transform.sql
sink: {format: delta, path: tables/closed, schema: out.ddl, mode: complete}
state: {partitions: 2}
"""


@pytest.mark.full
@pytest.mark.conformance("STATE-04")
def test_a_function_behind_which_more_state_follows_is_split_into_two_pipelines(sandbox: Sandbox) -> None:
    function = COUNT_UNTIL_QUIET.format(
        mode="append",
        timeout="EventTimeTimeout",
        set_timeout=HALF_AN_HOUR,
    )
    spec = SPEC.format(source=WATERMARK, sink="")
    sandbox.pipeline(
        "closing",
        spec,
        event_ddl=EVENT,
        out_ddl="why STRING, keys BIGINT",
        transform_py=CHAINED.format(function=function),
    )
    sandbox.land_json("landing/events/1.json", _rows("10:00 a", "10:01 a", "10:02 b"))
    error = refused(sandbox, "closing", "state.function-chained", TransformError)
    assert "followed by another stateful operator (Aggregate)" in error.what
    assert "split it into two pipelines" in (error.do or "")

    sandbox.pipeline(
        "closing", spec, event_ddl=EVENT, out_ddl="k STRING, n BIGINT, why STRING", transform_py=function
    )
    sandbox.pipeline(
        "closed",
        SECOND,
        out_ddl="why STRING, keys BIGINT, n BIGINT",
        transform_sql="SELECT why, count(*) AS keys, sum(n) AS n FROM closed GROUP BY why",
    )
    assert [report.error for report in sandbox.drain("closing", "closed")] == [None, None]
    assert sandbox.delta("tables/closed") == [("data", 2, 3)]

    sandbox.land_json("landing/events/2.json", _rows("10:20 a", "12:00 c"))
    assert [report.error for report in sandbox.drain("closing", "closed")] == [None, None]
    assert sandbox.delta("tables/closed") == _by_reason(sandbox.delta("tables/out"))
    assert ("quiet", 2, 4) in sandbox.delta("tables/closed")


def _by_reason(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The oracle: the second pipeline's query over the first one's table, in plain Python."""
    reasons = sorted({why for _, _, why in rows})
    return [(w, sum(r[2] == w for r in rows), sum(r[1] for r in rows if r[2] == w)) for w in reasons]


@pytest.mark.full
@pytest.mark.conformance("STATE-05")
def test_a_limit_counts_over_all_runs(sandbox: Sandbox) -> None:
    spec = SPEC.format(source="", sink="{mode}").replace("transform.py", "transform.sql")
    files = {"event_ddl": EVENT, "out_ddl": "k STRING"}
    limited = "SELECT k FROM events LIMIT 3"
    sandbox.pipeline("first", spec.replace("{mode}", ""), transform_sql=limited, **files)
    sandbox.land_json("landing/events/1.json", _rows("10:00 a", "10:01 b"))
    sandbox.run("first")
    sandbox.land_json("landing/events/2.json", _rows("10:02 c", "10:03 d"))
    sandbox.run("first")
    rows = [k for (k,) in sandbox.delta("tables/out")]
    assert (rows[:2], len(rows)) == (["a", "b"], 3)
    sandbox.land_json("landing/events/3.json", _rows("10:04 e"))
    sandbox.run("first")
    assert len(sandbox.delta("tables/out")) == 3

    update = spec.replace("{mode}", ", mode: update, keys: [k]").replace("tables/out", "tables/updated")
    sandbox.pipeline("updated", update, transform_sql=limited, **files)
    error = refused(sandbox, "updated", "state.limit-in-update", TransformError)
    assert "not supported in update mode" in error.what
    assert "mode: append" in (error.do or "")

    complete = spec.replace("{mode}", ", mode: complete").replace("tables/out", "tables/top")
    counted = "SELECT k FROM (SELECT k, count(*) AS n FROM events GROUP BY k) LIMIT 3"
    sandbox.pipeline("top", complete, transform_sql=counted, **files)
    sandbox.run("top")
    assert len(sandbox.delta("tables/top")) == 3
    sandbox.land_json("landing/events/4.json", _rows("10:05 f"))
    sandbox.run("top")
    assert len(sandbox.delta("tables/top")) == 3
