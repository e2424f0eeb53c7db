"""A Kafka record that comes back from the quarantine is the record that came: key, headers, place."""

from __future__ import annotations

import json

import pytest

from drawdown.errors import TransformError
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.sandbox import Sandbox
from tests.support.set_aside import replay, rows
from tests.support.topics import Topic

SPEC = """
sources:
  readings:
    format: kafka
    value: json
    schema: reading.ddl
    options: {subscribe: hourly, includeHeaders: true}
    watermark: {column: at, delay: 1 hour}
transform: transform.sql
sink: {format: delta, path: tables/readings, schema: out.ddl}
state: {partitions: 2}
"""
FILES = {
    "reading_ddl": "station STRING, celsius DOUBLE, at TIMESTAMP",
    "out_ddl": "station STRING, celsius DOUBLE, at TIMESTAMP, key STRING, header STRING, offset BIGINT",
    "transform_sql": """SELECT station, celsius, at, _kafka.key AS key,
        string(_kafka.headers[0].value) AS header, _kafka.offset AS offset FROM readings""",
}


@pytest.fixture
def sandbox(kafka_sandbox: Sandbox) -> Sandbox:
    return kafka_sandbox


def test_a_record_comes_back_whole(sandbox: Sandbox, broker: KafkaServer) -> None:
    sandbox.pipeline(
        "hourly", SPEC, **FILES, quality_yaml="rules: [{name: warm, check: celsius > 0, on_fail: quarantine}]"
    )
    times = "2024-01-01T10:00:00.123456Z"
    values = [
        f'{{"station": "EWR", "celsius": {celsius}, "at": {json.dumps(times)}}}'
        for celsius in ("1.5", "-2.5", '"cold"')
    ]
    Topic(broker, "hourly").write(values, key="k", headers={"h": "v"})
    run = sandbox.run("hourly")
    assert (run.counts.fed, run.counts.quarantined, run.counts.malformed) == (1, 1, 1)
    sandbox.pipeline("hourly", SPEC, **FILES, quality_yaml="rules: []")
    run = replay(sandbox, patch=("celsius = coalesce(try_cast(celsius as double), -9)",))
    assert run.counts.replayed == 2
    rows = [(*row[:2], f"{row[2]:%M:%S.%f}", *row[3:]) for row in sandbox.delta("tables/readings")]
    assert rows == [
        ("EWR", -2.5, "00:00.123456", "k", "v", 1),
        ("EWR", -9.0, "00:00.123456", None, None, 2),
        ("EWR", 1.5, "00:00.123456", "k", "v", 0),
    ]


@pytest.mark.full
def test_a_value_that_is_no_text_is_kept_byte_by_byte(sandbox: Sandbox, broker: KafkaServer) -> None:
    sandbox.pipeline("hourly", SPEC.replace("subscribe: hourly", "subscribe: latin"), **FILES)
    topic = Topic(broker, "latin")
    bad = '{"station": "M\u00fcnchen", "celsius": 1, "at": "2024-01-01T10:00:00Z"}'.encode("latin-1")
    topic.write([bad, bad.decode("latin-1").replace("\u00fc", "ue")])
    run = sandbox.run("hourly")
    assert (run.counts.fed, run.counts.malformed) == (1, 1)
    assert [row.raw for row in rows(sandbox)] == [bad]
    assert replay(sandbox).origin["left"] == {"malformed": 1}
    assert replay(sandbox, patch=("station = 'M\u00fcnchen'",)).counts.replayed == 1
    assert [row[0] for row in sandbox.delta("tables/readings")] == ["Muenchen", "M\u00fcnchen"]


@pytest.mark.full
def test_a_string_value_that_is_no_text_comes_back_with_its_key(
    sandbox: Sandbox, broker: KafkaServer
) -> None:
    sandbox.pipeline(
        "hourly",
        """
sources:
  readings: {format: kafka, value: string, options: {subscribe: lines}}
transform: transform.sql
sink: {format: delta, path: tables/lines, schema: out.ddl}
state: {partitions: 2}
""",
        out_ddl="key STRING, value STRING, offset BIGINT",
        transform_sql="SELECT key, value, offset FROM readings",
    )
    Topic(broker, "lines").write(["plain", "M\u00fcnchen".encode("latin-1")], key="k")
    assert sandbox.run("hourly").counts.malformed == 1
    assert sandbox.delta("tables/lines") == [("k", "plain", 0)]
    assert replay(sandbox).counts.replayed == 0
    replay(sandbox, patch=("value = decode(cast(value as binary), 'ISO-8859-1')",))
    assert sandbox.delta("tables/lines") == [("k", "M\u00fcnchen", 1), ("k", "plain", 0)]


def test_a_key_that_is_no_text_is_refused_where_it_is_selected_as_text(
    sandbox: Sandbox, broker: KafkaServer
) -> None:
    spec = """
sources:
  readings: {format: kafka, value: string, options: {subscribe: keys}}
transform: transform.sql
sink: {format: delta, path: tables/lines, schema: out.ddl}
state: {partitions: 2}
"""
    ddl = "key STRING, value STRING"
    sandbox.pipeline("hourly", spec, out_ddl=ddl, transform_sql="SELECT key, value FROM readings")
    Topic(broker, "keys").write(["v"], key=b"\xff\xfe")
    with pytest.raises(TransformError, match=r"sink\.unfit-text"):
        sandbox.run("hourly")
    sql = "SELECT hex(key) AS key, value FROM readings"
    sandbox.pipeline("hourly", spec, out_ddl=ddl, transform_sql=sql)
    assert sandbox.run("hourly").counts.fed == 1
    assert sandbox.delta("tables/lines") == [("FFFE", "v")]
