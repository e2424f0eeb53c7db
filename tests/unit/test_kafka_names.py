"""Topics that belong to Kafka or to a ledger: no spec and no row names one; a damaged ledger is noticed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawdown.changes.protocol import Commit, Staged
from drawdown.errors import RefusedError, TransformError
from drawdown.metastore.records import StagedFile
from drawdown.sinks.kafka.ledger import KafkaLedger, Marker
from drawdown.sinks.kafka.publish import KafkaTarget
from drawdown.spec import Broker
from drawdown.spec.sink import Sink
from drawdown.storage import Storage
from drawdown.values.kafka_names import is_reserved, ledger_topic
from tests.support.refusals import refused_spec
from tests.support.registered import change
from tests.support.sandbox import Sandbox

SOURCE = "{format: kafka, value: string, OPTIONS}"
FILES = "{format: json, path: in, schema: 'id BIGINT', OPTIONS}"
SPEC = """
sources:
  events: SOURCE
transform: transform.sql
sink: SINK
"""
SUBSCRIBED = SOURCE.replace("OPTIONS", "options: {subscribe: a}")
DELTA = "{format: delta, path: tables/out, schema: 'id BIGINT'}"
RESERVED = [ledger_topic("victim"), "drawdown-ledger_victim", "drawdown-ledger", "__consumer_offsets"]


@pytest.mark.capability("SAFE-11")
@pytest.mark.parametrize("topic", RESERVED)
@pytest.mark.parametrize(
    ("source", "sink"),
    [
        (SUBSCRIBED, "{format: kafka, topic: TOPIC}"),
        (SUBSCRIBED, "{format: kafka, topic: TOPIC, delivery: at_least_once}"),
        (SOURCE.replace("OPTIONS", "options: {subscribe: 'a, TOPIC'}"), DELTA),
        (SOURCE.replace("OPTIONS", "options: {assign: '{\"TOPIC\": [0]}'}"), DELTA),
        (FILES.replace("OPTIONS", "arrivals: {topic: TOPIC}"), DELTA),
    ],
)
def test_a_topic_of_kafka_or_of_a_ledger_is_refused(
    sandbox: Sandbox, topic: str, source: str, sink: str
) -> None:
    spec = SPEC.replace("SOURCE", source).replace("SINK", sink).replace("TOPIC", topic)
    error = refused_spec(
        sandbox, "rows", spec, "spec.reserved-name", transform_sql="SELECT value FROM events"
    )
    assert topic in error.what


def test_a_consumer_group_is_no_ledger(sandbox: Sandbox) -> None:
    source = SUBSCRIBED.replace("value:", "commit_group: drawdown-ledger, value:")
    spec = SPEC.replace("SOURCE", source).replace("SINK", DELTA)
    refused_spec(sandbox, "rows", spec, "spec.reserved-name", transform_sql="SELECT value FROM events")


@pytest.mark.parametrize("topic", ["drawdown", "drawdown-ledgers", "my.drawdown-ledger.x", "_x", "a__b"])
def test_other_topics_are_a_users(topic: str) -> None:
    assert not is_reserved(topic)


@pytest.mark.capability("SAFE-11")
def test_rows_staged_for_a_ledger_are_refused_before_any_is_sent(tmp_path: Path) -> None:
    staged = []
    for batch, topics in enumerate([["a", "b"], ["a", ledger_topic("victim")]]):
        path = tmp_path / f"{batch}.parquet"
        pq.write_table(pa.table({"topic": topics, "value": topics}), path)
        staged.append((batch, StagedFile("output", str(path), path.stat().st_size, 2)))
    sink = Sink.model_validate({"format": "kafka"})
    target = KafkaTarget(Storage(str(tmp_path)), Broker(bootstrap_servers="localhost:1"), "p", sink)
    commit = Commit("drawdown/p/1/output", 1, change(1))
    target._opened[commit.app_id] = None, Marker()  # a producer that is used would raise AttributeError
    with pytest.raises(TransformError, match=r"sink\.reserved-topic.*drawdown-ledger\.victim"):
        target.make_visible(Staged([0, 1], staged), commit)


def test_a_marker_is_read_as_it_was_written() -> None:
    marker = Marker(3, "a.parquet", 7, False, 2, "run")
    assert Marker.of(marker.as_bytes()) == marker
    assert Marker.of(b'{"batch": 1, "file": "f", "rows": 2, "whole": true, "epoch": 1}').purpose == ""


@pytest.mark.capability("SAFE-11")
@pytest.mark.parametrize(
    "value",
    [
        b"junk", b"\xff\xfe", b"7", b"[]", b"{}", b"{", b"[" * 10_000,
        json.dumps({"batch": 999_999}).encode(),
        json.dumps({"batch": "1", "file": "f", "rows": 1}).encode(),
        json.dumps({"batch": True, "file": "f", "rows": 1}).encode(),
        json.dumps({"batch": -5, "file": "f", "rows": 1}).encode(),
        json.dumps({"batch": 1, "file": "f", "rows": 1, "more": 1}).encode(),
    ],
)  # fmt: skip
def test_a_record_that_is_no_marker_is_one_clear_error(value: bytes) -> None:
    ledger = KafkaLedger(Broker(bootstrap_servers="localhost:1"), "victim")
    with pytest.raises(RefusedError) as refused:
        ledger._marker(SimpleNamespace(value=lambda: value, offset=lambda: 7))
    assert refused.value.id == "sink.ledger-damaged"
    assert "record 7" in refused.value.what
    assert "new pipeline folder" in refused.value.do


@pytest.mark.capability("SAFE-11")
@pytest.mark.parametrize("settle", ["3650 days", "61 minutes"])
def test_nobody_waits_for_a_young_file_longer_than_an_hour(sandbox: Sandbox, settle: str) -> None:
    def spec(text: str) -> str:
        return SPEC.replace("SOURCE", FILES.replace("OPTIONS", f"settle: {text}")).replace("SINK", DELTA)

    sql = "SELECT id FROM events"
    error = refused_spec(sandbox, "rows", spec(settle), "spec.wrong-duration", transform_sql=sql)
    assert "1 hour at most" in error.what
    assert sandbox.pipeline("rows", spec("60 minutes"), transform_sql=sql).sources["events"].settle
