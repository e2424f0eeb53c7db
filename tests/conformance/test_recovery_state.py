"""REC: changes between two runs of what is kept in state, and of what wrote it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.changes import change_allowed, change_refused, land, land_and_run, write
from tests.support.refusals import planned
from tests.support.sandbox import Sandbox

UPDATED = "format: delta, path: tables/out, schema: out.ddl, mode: update, keys: [k]"
DELTA = "format: delta, path: tables/out, schema: out.ddl"
COUNTED = "k STRING, n BIGINT"

# Old and new GROUP BY, and what the refusal shows of each. In all but two Spark itself sees the same types.
GROUPS = {
    "another key of the same type": (
        "SELECT k, count(*) AS n FROM events GROUP BY k",
        "SELECT j AS k, count(*) AS n FROM events GROUP BY j",
        "was count(1) bigint by events.k string and is now count(1) bigint by events.j string",
    ),
    "another key behind the same name": (
        "SELECT c AS k, count(*) AS n FROM (SELECT k AS c FROM events) GROUP BY c",
        "SELECT c AS k, count(*) AS n FROM (SELECT j AS c FROM events) GROUP BY c",
        "by events.k string and is now count(1) bigint by events.j string",
    ),
    "two keys swapped": (
        "SELECT concat(k, j) AS k, count(*) AS n FROM events GROUP BY k, j",
        "SELECT concat(k, j) AS k, count(*) AS n FROM events GROUP BY j, k",
        "by events.k string, events.j string and is now count(1) bigint by events.j string, events.k string",
    ),
    "one more key": (
        "SELECT k, count(*) AS n FROM events GROUP BY k",
        "SELECT k, count(*) AS n FROM events GROUP BY k, j",
        "by events.k string and is now count(1) bigint by events.k string, events.j string",
    ),
    "another aggregate": (
        "SELECT k, max(v) AS n FROM events GROUP BY k",
        "SELECT k, min(v) AS n FROM events GROUP BY k",
        "was max(events.v) bigint by events.k string and is now min(events.v) bigint by events.k string",
    ),
    "aggregates swapped": (
        "SELECT k, max(v) - min(v) AS n FROM events GROUP BY k",
        "SELECT k, -min(v) + max(v) AS n FROM events GROUP BY k",
        "was max(events.v) bigint, min(events.v) bigint",
    ),
    "another window": (
        "SELECT max(k) AS k, count(*) AS n FROM events GROUP BY window(at, '1 hour')",
        "SELECT max(k) AS k, count(*) AS n FROM events GROUP BY window(at, '2 hours')",
        "by window(events.at, 1 hour) and is now max(events.k) string, count(1) bigint",
    ),
}

DISTINCT = """
def transform(sources):
    return sources["events"].{call}({keys}).select("k", "v")
"""

JOIN = """
SELECT events.k, names.v FROM events {kind} JOIN names
ON {keys} AND events.at BETWEEN names.at AND names.at + INTERVAL 1 HOUR
"""
NAMES = """}
  names: {format: json, path: landing/names, schema: event.ddl, watermark: {column: at, delay: 1 hour}"""

FUNCTION = """
import pandas as pd

def counted(key, frames, state):
    n = (state.get[0] if state.exists else {start}) + sum(len(frame) for frame in frames)
    state.update(({value},))
    yield pd.DataFrame({{"k": [key[0]], "n": [n]}})

def transform(sources):
    by_key, out = sources["events"].groupBy("k"), "k STRING, n BIGINT"
    return by_key.applyInPandasWithState(counted, out, "{state}", "{mode}", "{timeout}")
"""

PROCESSOR = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

class Counted(StatefulProcessor):
    def init(self, handle):
        self.n = handle.getValueState("n", "n BIGINT")

    def handleInputRows(self, key, rows, timers):
        n = (self.n.get()[0] if self.n.exists() else 0) + sum(1 for _ in rows)
        self.n.update((n,))
        yield Row(k=key[0], n=n)

    def close(self):
        pass

def transform(sources):
    by_key = sources["events"].groupBy("k")
    return by_key.transformWithState(Counted(), "k STRING, n BIGINT", "update", "none")
"""


@pytest.mark.sampled
@pytest.mark.fault("F15", "delta")
@pytest.mark.conformance("REC-11")
@pytest.mark.parametrize("change", list(GROUPS))
def test_other_grouping_keys_or_aggregates_are_refused(sandbox: Sandbox, change: str) -> None:
    before, now, shown = GROUPS[change]
    write(sandbox, before, sink=UPDATED, out_ddl=COUNTED)
    land_and_run(sandbox, "1", ("a", "x", 1))
    was = sandbox.delta("tables/out")
    write(sandbox, now, sink=UPDATED)
    land(sandbox, "2", ("b", "a", 2))
    said = change_refused(sandbox)
    assert "state.kept" in said
    assert shown in said
    assert "aggregates and state schema must stay as they are" in said
    assert sandbox.delta("tables/out") == was


@pytest.mark.full
@pytest.mark.conformance("REC-11")
def test_what_is_made_of_an_aggregate_may_change(sandbox: Sandbox) -> None:
    write(sandbox, "SELECT k, sum(v) AS n FROM events GROUP BY k", sink=UPDATED, out_ddl=COUNTED)
    land_and_run(sandbox, "1", ("a", "x", 1))
    write(sandbox, "SELECT k, 10 * sum(v) AS n FROM events WHERE j = 'x' GROUP BY k", sink=UPDATED)
    land(sandbox, "2", ("a", "x", 2), ("a", "y", 4))
    assert list(change_allowed(sandbox)) == ["transform"]
    sandbox.run("changed")
    assert sandbox.delta("tables/out") == [("a", 30)]


@pytest.mark.sampled
@pytest.mark.conformance("REC-12")
@pytest.mark.parametrize(
    ("call", "before", "now", "shown"),
    [
        ("dropDuplicates", ["k"], ["j"], "first of events.k string ever and is now first of events.j string"),
        ("dropDuplicates", ["k", "j"], ["j", "k"], "is now first of events.j string, events.k string"),
        ("dropDuplicatesWithinWatermark", ["k"], ["k", "j"], "events.k string, events.j string within the"),
    ],
)
def test_other_deduplication_columns_are_refused(
    sandbox: Sandbox, call: str, before: list[str], now: list[str], shown: str
) -> None:
    files = {"suffix": "py", "sink": DELTA, "out_ddl": "k STRING, v BIGINT"}
    write(sandbox, DISTINCT.format(call=call, keys=before), **files)
    land_and_run(sandbox, "1", ("a", "x", 1), ("a", "x", 1))
    write(sandbox, DISTINCT.format(call=call, keys=now), **files)
    land(sandbox, "2", ("a", "x", 2))
    assert shown in change_refused(sandbox)
    assert sandbox.delta("tables/out") == [("a", 1)]


@pytest.mark.sampled
@pytest.mark.conformance("REC-13")
@pytest.mark.parametrize(
    ("kind", "keys", "shown"),
    [
        ("INNER", "events.j = names.j", "events.k string = names.k string"),
        ("LEFT", "events.k = names.k", "is now left outer join on"),
    ],
)
def test_other_join_keys_and_kinds_are_refused(sandbox: Sandbox, kind: str, keys: str, shown: str) -> None:
    files = {
        "sink": DELTA,
        "out_ddl": "k STRING, v BIGINT",
        "source": NAMES,
    }
    write(sandbox, JOIN.format(kind="INNER", keys="events.k = names.k"), **files)
    land(sandbox, "1", ("a", "x", 1))
    land_and_run(sandbox, "../names/1", ("a", "x", 7))
    # The sides of an equality have no order.
    write(sandbox, JOIN.format(kind="INNER", keys="names.k = events.k"), **files)
    assert list(change_allowed(sandbox)) == ["transform"]
    write(sandbox, JOIN.format(kind=kind, keys=keys), **files)
    land(sandbox, "2", ("a", "x", 2))
    assert shown in change_refused(sandbox)
    assert sandbox.delta("tables/out") == [("a", 7)]


@pytest.mark.full
@pytest.mark.conformance("REC-13")
def test_other_columns_that_a_join_keeps_are_refused(sandbox: Sandbox) -> None:
    files = {"sink": DELTA, "out_ddl": "k STRING, v BIGINT", "source": NAMES}
    joined = JOIN.format(kind="INNER", keys="events.k = names.k")
    write(sandbox, joined, **files)
    land(sandbox, "1", ("a", "x", 1))
    land_and_run(sandbox, "../names/1", ("a", "x", 7))
    write(sandbox, joined.replace("events.k, names.v", "names.v, concat(events.k, 'b') AS k"), **files)
    assert list(change_allowed(sandbox)) == ["transform"]
    write(sandbox, joined.replace("events.k, names.v", "names.j AS k, names.v"), **files)
    land(sandbox, "2", ("a", "x", 2))
    assert "names.j string" in change_refused(sandbox)
    assert sandbox.delta("tables/out") == [("a", 7)]


@pytest.mark.sampled
@pytest.mark.conformance("REC-14")
@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"state": "n STRING", "value": "str(n)"}, "state n BIGINT by events.k string"),
        ({"timeout": "ProcessingTimeTimeout"}, "timeout ProcessingTimeTimeout"),
    ],
)
def test_another_state_schema_or_timeout_is_refused_and_another_body_is_not(
    sandbox: Sandbox, change: dict[str, str], shown: str
) -> None:
    files = {"suffix": "py", "sink": UPDATED, "out_ddl": COUNTED}
    first = {"state": "n BIGINT", "mode": "update", "timeout": "NoTimeout", "start": "0", "value": "n"}
    write(sandbox, FUNCTION.format(**first), **files)
    land_and_run(sandbox, "1", ("a", "x", 1), ("a", "x", 1))
    write(sandbox, FUNCTION.format(**{**first, **change}), **files)
    land(sandbox, "2", ("a", "x", 2), ("b", "x", 2))
    assert shown in change_refused(sandbox)
    write(sandbox, FUNCTION.format(**{**first, "start": "100"}), **files)
    assert "function bodies may change" in change_allowed(sandbox)["transform"]
    sandbox.run("changed")
    assert sandbox.delta("tables/out") == [("a", 3), ("b", 101)]


@pytest.mark.sampled
@pytest.mark.conformance("REC-14")
@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (('"n", "n BIGINT"', '"n", "n STRING"'), "was value n: n bigint by events.k string"),
        (("getValueState", "getListState"), "and is now list n: n bigint by events.k string"),
        (('"none"', '"processingTime"'), "time ProcessingTime"),
    ],
)
def test_another_state_of_a_processor_is_refused_and_another_body_is_not(
    sandbox: Sandbox, change: tuple[str, str], shown: str
) -> None:
    files = {"suffix": "py", "sink": UPDATED, "out_ddl": COUNTED}
    write(sandbox, PROCESSOR, **files)
    land_and_run(sandbox, "1", ("a", "x", 1), ("a", "x", 1))
    write(sandbox, PROCESSOR.replace(*change), **files)
    land(sandbox, "2", ("a", "x", 2), ("b", "x", 2))
    assert shown in change_refused(sandbox)
    write(sandbox, PROCESSOR.replace("else 0", "else 100"), **files)
    assert "function bodies may change" in change_allowed(sandbox)["transform"]
    sandbox.run("changed")
    assert sandbox.delta("tables/out") == [("a", 3), ("b", 101)]


@pytest.mark.sampled
@pytest.mark.conformance("REC-15")
@pytest.mark.parametrize("change", ["order", "name"])
def test_reordered_and_renamed_sources_are_detected(sandbox: Sandbox, change: str) -> None:
    both = "SELECT k, v FROM events UNION ALL SELECT k, v FROM names"
    source = NAMES
    files = {"sink": DELTA, "out_ddl": "k STRING, v BIGINT"}
    write(sandbox, both, source=source, **files)
    land(sandbox, "1", ("a", "x", 1))
    land_and_run(sandbox, "../names/1", ("b", "x", 2))
    if change == "order":
        write(sandbox, "SELECT k, v FROM names UNION ALL SELECT k, v FROM events", source=source, **files)
        shown = "events#carrier, names, names#carrier and is now names, names#carrier, events"
    else:
        write(sandbox, both.replace("names", "others"), source=source.replace("names:", "others:"), **files)
        shown = "sources.names was 'json landing/names' and is now not there"
    land(sandbox, "2", ("a", "x", 3))
    assert shown in change_refused(sandbox)
    assert sandbox.delta("tables/out") == [("a", 1), ("b", 2)]


@pytest.mark.conformance("REC-17")
def test_versions_and_state_formats_are_noted_and_another_version_goes_on(sandbox: Sandbox) -> None:
    write(sandbox, "SELECT k, sum(v) AS n FROM events GROUP BY k", sink=UPDATED, out_ddl=COUNTED)
    land_and_run(sandbox, "1", ("a", "x", 1))
    assert sandbox.spark is not None
    noted = planned(sandbox, "changed").generation.checkpoint
    assert noted is not None
    assert noted.fingerprint["versions"]["spark"] == sandbox.spark.version
    assert set(noted.fingerprint["versions"]) == {"spark", "delta", "drawdown"}
    formats = noted.fingerprint["state.formats"]
    assert formats["spark.sql.streaming.aggregation.stateFormatVersion"] == "2"

    older = {**noted.fingerprint, "versions": {**noted.fingerprint["versions"], "spark": "4.1.0"}}
    for key in ("state.options", "state.kept", "sink.keys"):
        del older[key]  # which an older Drawdown did not note
    with sandbox.metastore() as metastore:
        lease = metastore.acquire("changed", "test", "test", timedelta(minutes=1))
        metastore.update_fingerprint(lease, noted.generation, older)
        metastore.release(lease)
    land(sandbox, "2", ("a", "x", 2))
    said = change_allowed(sandbox)
    assert list(said) == ["versions"]
    assert f"versions was spark 4.1.0 and is now spark {sandbox.spark.version}" in said["versions"]
    sandbox.run("changed")
    assert sandbox.delta("tables/out") == [("a", 3)]
    again = planned(sandbox, "changed").generation.checkpoint
    assert again is not None
    assert again.fingerprint == noted.fingerprint
