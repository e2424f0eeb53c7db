"""Warnings of a plan that no drain needs to show, and the refusal that only Spark's own check knows."""

from __future__ import annotations

from drawdown.errors import TransformError
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox
from tests.support.two_streams import WATERMARK, joining, spec
from tests.support.verdicts import warnings

EVENTS = """
sources:
  events: {{format: json, path: landing/events, schema: event.ddl{source}}}
transform: {transform}
sink: {sink}
state: {{partitions: 2}}
"""
SINK = "{format: parquet, path: tables/out}"
EVENT = "at TIMESTAMP, k STRING, v BIGINT"
NEWEST_FIRST = (
    ", watermark: {column: at, delay: 10 minutes}, options: {latestFirst: true, maxFilesPerTrigger: 1}"
)
GROUPS = """
def transform(sources):
    events = sources["events"]
    return events.groupBy("k").applyInPandas(lambda rows: rows, events.schema)
"""


def _pipeline(sandbox: Sandbox, source: str = "", sink: str = SINK, **transform: str) -> None:
    (sandbox.storage / "landing" / "events").mkdir(parents=True)
    name = next(iter(transform)).replace("_", ".")
    text = EVENTS.format(source=source, sink=sink, transform=name)
    sandbox.pipeline("events", text, event_ddl=EVENT, out_ddl="k STRING", **transform)


def test_newest_files_first_make_older_rows_late(sandbox: Sandbox) -> None:
    _pipeline(sandbox, NEWEST_FIRST, transform_sql="SELECT * FROM events")
    warning = warnings(sandbox, "events")["source.latest-first-late"]
    assert "the rows of older files come too late" in warning.what


def test_distinct_without_a_watermark_keeps_all(sandbox: Sandbox) -> None:
    delta = "{format: delta, path: tables/out, mode: update, keys: [k], schema: out.ddl}"
    _pipeline(sandbox, sink=delta, transform_sql="SELECT DISTINCT k FROM events")
    assert "every combination of k" in warnings(sandbox, "events")["transform.distinct-for-ever"].what


def test_pandas_sees_the_groups_of_one_batch(sandbox: Sandbox) -> None:
    _pipeline(sandbox, transform_py=GROUPS)
    assert "one batch only" in warnings(sandbox, "events")["transform.groups-of-one-batch"].what


def test_one_watermark_frees_both_sides_of_a_join(sandbox: Sandbox) -> None:
    sql = "SELECT o.id, o.at FROM orders o JOIN payments p ON o.id = p.id AND o.at = p.at"
    joining(sandbox, spec(orders=WATERMARK, payments=""), sql, "id BIGINT, at TIMESTAMP")
    assert "give a `watermark:` to" in warnings(sandbox, "paid")["join.one-watermark"].do


def test_what_only_spark_knows_is_refused_in_its_words(sandbox: Sandbox) -> None:
    _pipeline(sandbox, transform_sql="SELECT k, monotonically_increasing_id() AS n FROM events")
    sandbox.land_json("landing/events/1.json", [{"at": "2024-01-01T10:00:00Z", "k": "a", "v": 1}])
    error = refused(sandbox, "events", "transform.unsupported", TransformError)
    assert "monotonically_increasing_id" in error.what


def test_a_stream_that_passes_over_changes_is_warned_of(sandbox: Sandbox) -> None:
    _pipeline(sandbox, transform_sql="SELECT * FROM events")
    (sandbox.storage / "tables").mkdir(exist_ok=True)
    sandbox.spark.range(3).write.format("delta").save(str(sandbox.storage / "tables" / "changing"))
    text = "sources: {t: {format: delta, path: tables/changing, options: {skipChangeCommits: true}}}\n"
    text += "transform: transform.sql\nsink: {format: parquet, path: tables/copied}\n"
    sandbox.pipeline("reader", text, transform_sql="SELECT id FROM t")
    warning = warnings(sandbox, "reader")["source.hidden-changes"]
    assert "skips every commit that changes or deletes rows" in warning.what
