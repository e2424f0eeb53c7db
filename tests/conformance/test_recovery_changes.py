"""REC: changes between two runs, of sources, sinks and stateless parts."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from drawdown.errors import RefusedError
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.changes import change_allowed, change_refused, land, land_and_run, write, written
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox

PLAIN = "SELECT k, v FROM events"
DELTA = "format: delta, path: tables/out, schema: out.ddl"
FOREACH = """
class Writer:
    def process(self, row):
        with open("{file}", "a") as lines:
            print(row.value, file=lines)
"""


def _other(source: str) -> str:
    return f", malformed: drop}}\n  more: {{format: json, path: landing/{source}, schema: event.ddl"


@pytest.mark.sampled
@pytest.mark.conformance("REC-01")
@pytest.mark.parametrize("change", ["one more", "one less", "another format"])
def test_other_sources_are_refused(sandbox: Sandbox, change: str) -> None:
    both = "SELECT k, v FROM events UNION ALL SELECT k, v FROM more"
    for folder in ("events", "more"):
        land(sandbox, f"../{folder}/1", ("a", "x", 1))
    if change == "one less":
        write(sandbox, both, source=_other("more"))
    else:
        write(sandbox, PLAIN)
    sandbox.run("changed")
    if change == "one more":
        write(sandbox, both, source=_other("more"))
    elif change == "one less":
        write(sandbox, PLAIN)
    else:
        spec = (sandbox.root / "include/pipelines/changed/pipeline.yaml").read_text()
        sandbox.pipeline("changed", spec.replace("{format: json", "{format: csv"))
    land(sandbox, "2", ("b", "x", 2))
    said = change_refused(sandbox)
    assert {
        "one more": "sources.more was not there and is now 'json landing/more'",
        "one less": "sources.more was 'json landing/more' and is now not there",
        "another format": "sources.events was 'json landing/events' and is now 'csv landing/events'",
    }[change] in said
    assert "changes in the number, type, topic or path of the sources are not allowed" in said


@pytest.mark.full
@pytest.mark.conformance("REC-02")
def test_rate_limits_may_come_change_and_go(sandbox: Sandbox) -> None:
    limits = ["", ", options: {maxFilesPerTrigger: 2}", ", options: {maxFilesPerTrigger: 1}", ""]
    batches = []
    for run, limit in enumerate(limits):
        write(sandbox, PLAIN, source=limit)
        for part in "ab":
            land(sandbox, f"{run}{part}", (part, "x", run))
        if run:
            said = change_allowed(sandbox)["sources.events.options"]
            assert "maxFilesPerTrigger" in said
            assert "rate limits" in said
        batches.append(sandbox.run("changed").batches)
        assert change_allowed(sandbox) == {}, "the change is noted with the batch that ran under it"
    assert batches == [1, 1, 2, 1]
    assert written(sandbox, "k", "v") == [(k, v) for k in "ab" for v in range(4)]


@pytest.mark.fault("F17", "files")
@pytest.mark.conformance("REC-03")
def test_another_path_is_refused(sandbox: Sandbox) -> None:
    write(sandbox, PLAIN)
    land_and_run(sandbox, "1", ("a", "x", 1))
    spec = (sandbox.root / "include/pipelines/changed/pipeline.yaml").read_text()
    sandbox.pipeline("changed", spec.replace("landing/events", "landing/other"))
    land(sandbox, "../other/1", ("b", "x", 2))
    said = change_refused(sandbox)
    assert "sources.events was 'json landing/events' and is now 'json landing/other'" in said


@pytest.mark.full
@pytest.mark.conformance("REC-03")
def test_another_topic_is_refused(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    topics = [_topic(broker, "one"), _topic(broker, "two")]
    spec = """
        sources: {events: {format: kafka, options: {subscribe: TOPIC}, value: string}}
        transform: transform.sql
        sink: {format: parquet, path: tables/out}
        """
    sql = "SELECT value FROM events"
    kafka_sandbox.pipeline("changed", spec.replace("TOPIC", topics[0]), transform_sql=sql)
    kafka_sandbox.run("changed")
    kafka_sandbox.pipeline("changed", spec.replace("TOPIC", topics[1]))
    said = change_refused(kafka_sandbox)
    assert f"was 'kafka subscribe={topics[0]}' and is now 'kafka subscribe={topics[1]}'" in said
    assert written(kafka_sandbox, "value") == [("one",)]


@pytest.mark.full
@pytest.mark.conformance("REC-04")
def test_files_may_become_a_topic_that_gets_the_new_rows(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    topic = _topic(broker)
    write(kafka_sandbox, "SELECT k AS value FROM events")
    land_and_run(kafka_sandbox, "1", ("old", "x", 1))
    write(
        kafka_sandbox,
        "SELECT k AS value FROM events",
        sink=f"format: kafka, delivery: at_least_once, topic: {topic}",
    )
    land(kafka_sandbox, "2", ("new", "x", 2))
    assert "Kafka gets only new rows" in change_allowed(kafka_sandbox)["sink"]
    kafka_sandbox.run("changed")
    assert _values(kafka_sandbox, broker, topic) == ["new"]
    assert written(kafka_sandbox, "value") == [("old",)]


@pytest.mark.conformance("REC-05")
def test_a_topic_cannot_become_files(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    topic = _topic(broker)
    write(
        kafka_sandbox,
        "SELECT k AS value FROM events",
        sink=f"format: kafka, delivery: at_least_once, topic: {topic}",
    )
    land_and_run(kafka_sandbox, "1", ("old", "x", 1))
    write(kafka_sandbox, "SELECT k AS value FROM events")
    land(kafka_sandbox, "2", ("new", "x", 2))
    said = change_refused(kafka_sandbox)
    assert f"sink was 'kafka topic {topic}' and is now 'parquet tables/out'" in said
    assert "a Kafka sink cannot become a file sink" in said
    assert _values(kafka_sandbox, broker, topic) == ["old"]


@pytest.mark.sampled
@pytest.mark.conformance("REC-06")
@pytest.mark.parametrize("first", ["kafka", "foreach"])
def test_a_topic_and_foreach_may_take_each_others_place(
    kafka_sandbox: Sandbox, broker: KafkaServer, first: str
) -> None:
    topic, file = _topic(broker), kafka_sandbox.root / "lines"
    sinks = {
        "kafka": f"format: kafka, delivery: at_least_once, topic: {topic}",
        "foreach": "format: foreach, function: rows.py",
    }
    second = "foreach" if first == "kafka" else "kafka"
    for number, sink in enumerate((first, second)):
        code = FOREACH.format(file=file)
        write(kafka_sandbox, "SELECT k AS value FROM events", sink=sinks[sink], rows_py=code)
        land(kafka_sandbox, str(number), (f"to {sink}", "x", 1))
        if number:
            assert "a Kafka sink may become foreach and vice versa" in change_allowed(kafka_sandbox)["sink"]
        kafka_sandbox.run("changed")
    assert _values(kafka_sandbox, broker, topic) == ["to kafka"]
    assert file.read_text().splitlines() == ["to foreach"]


@pytest.mark.sampled
@pytest.mark.conformance("REC-07")
@pytest.mark.parametrize("sink", ["format: parquet, path: tables/out", DELTA])
def test_another_output_path_is_refused(sandbox: Sandbox, sink: str) -> None:
    write(sandbox, PLAIN, sink=sink, out_ddl="k STRING, v BIGINT")
    land_and_run(sandbox, "1", ("a", "x", 1))
    write(sandbox, PLAIN, sink=sink.replace("tables/out", "tables/other"))
    land(sandbox, "2", ("b", "x", 2))
    said = change_refused(sandbox)
    kind = "parquet" if "parquet" in sink else "delta"
    assert f"sink was '{kind} tables/out' and is now '{kind} tables/other'" in said
    assert "would lack all rows written so far" in said


@pytest.mark.full
@pytest.mark.conformance("REC-08")
def test_another_output_topic_gets_the_new_rows(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    topics = [_topic(broker), _topic(broker)]
    for number, topic in enumerate(topics):
        write(
            kafka_sandbox,
            "SELECT k AS value FROM events",
            sink=f"format: kafka, delivery: at_least_once, topic: {topic}",
        )
        land(kafka_sandbox, str(number), (f"row {number}", "x", 1))
        if number:
            assert "the output topic may change" in change_allowed(kafka_sandbox)["sink"]
        kafka_sandbox.run("changed")
    assert [_values(kafka_sandbox, broker, topic) for topic in topics] == [["row 0"], ["row 1"]]


@pytest.mark.full
@pytest.mark.conformance("REC-09")
def test_filters_and_projections_of_the_same_schema_may_change(sandbox: Sandbox) -> None:
    transforms = [
        PLAIN,
        "SELECT k, v FROM events WHERE v > 10",
        "SELECT upper(k) AS k, v * 2 AS v FROM events",
    ]
    for number, sql in enumerate(transforms):
        write(sandbox, sql)
        land(sandbox, str(number), ("a", "x", 1), ("b", "x", 11))
        if number:
            assert "filters, projections" in change_allowed(sandbox)["transform"]
        sandbox.run("changed")
    assert written(sandbox, "k", "v") == [("A", 2), ("B", 22), ("a", 1), ("b", 11), ("b", 11)]


@pytest.mark.conformance("REC-10")
def test_another_output_schema_goes_by_what_the_sink_takes(sandbox: Sandbox) -> None:
    write(sandbox, PLAIN)
    land_and_run(sandbox, "1", ("a", "x", 1))
    write(sandbox, "SELECT k, v, j FROM events")
    land(sandbox, "2", ("b", "y", 2))
    said = change_allowed(sandbox)["sink.schema"]
    assert "was 'k string, v bigint' and is now 'k string, v bigint, j string'" in said
    sandbox.run("changed")
    assert written(sandbox, "k", "v", "j") == [("a", 1, None), ("b", 2, "y")], "files take any columns"


@pytest.mark.conformance("REC-10")
def test_a_declared_schema_refuses_another_one_by_name(sandbox: Sandbox) -> None:
    write(sandbox, PLAIN, sink=DELTA, out_ddl="k STRING, v BIGINT")
    land_and_run(sandbox, "1", ("a", "x", 1))
    land(sandbox, "2", ("b", "y", 2))
    write(sandbox, "SELECT k, v AS w FROM events", sink=DELTA)
    error = refused(sandbox, "changed", "sink.schema-drift", RefusedError)
    assert "`v` is missing; `w` is extra" in error.what
    write(sandbox, "SELECT k, v AS w FROM events", sink=DELTA, out_ddl="k STRING, w BIGINT")
    error = refused(sandbox, "changed", "sink.schema-drift", RefusedError)
    assert "the Delta table" in error.what
    assert sandbox.delta("tables/out") == [("a", 1)]


@pytest.mark.sampled
@pytest.mark.conformance("REC-10")
@pytest.mark.parametrize("mode", ["", ", mode: update, keys: [k]"])
def test_a_column_that_the_declared_schema_gains_is_added_to_the_table(sandbox: Sandbox, mode: str) -> None:
    write(sandbox, PLAIN, sink=DELTA + mode, out_ddl="k STRING, v BIGINT")
    sandbox.pipeline(
        "behind",
        "sources: {changed: {format: delta, path: tables/out}}\n"
        "transform: transform.sql\nsink: {format: parquet, path: tables/behind}\n",
        transform_sql="SELECT k FROM changed",
    )
    land_and_run(sandbox, "1", ("a", "x", 1))
    if not mode:
        sandbox.run("behind")
    write(sandbox, "SELECT k, v, j FROM events", sink=DELTA + mode, out_ddl="k STRING, v BIGINT, j STRING")
    assert "gets the missing columns" in change_allowed(sandbox)["sink.schema"]
    assert sandbox.delta("tables/out") == [("a", 1)], "plan adds nothing"
    land_and_run(sandbox, "2", ("b", "y", 2))
    assert sorted(sandbox.delta("tables/out")) == [("a", 1, None), ("b", 2, "y")]
    if not mode:
        sandbox.run("behind")
        assert written(sandbox, "k", path="tables/behind") == [("a",), ("b",)]


def _topic(broker: KafkaServer, *values: str) -> str:
    """A topic of its own that holds these records."""
    name = f"rec-{uuid.uuid4().hex[:8]}"
    address = {"bootstrap.servers": broker.bootstrap_servers}
    admin = AdminClient(address)
    admin.create_topics([NewTopic(name, 1, 1)])[name].result()
    producer = Producer(address)
    for value in values:
        producer.produce(name, value.encode())
    producer.flush()
    return name


def _values(sandbox: Sandbox, broker: KafkaServer, topic: str) -> Sequence[str]:
    """What a topic holds, read as a batch."""
    assert sandbox.spark is not None
    reader = sandbox.spark.read.format("kafka").option("subscribe", topic)
    frame = reader.option("kafka.bootstrap.servers", broker.bootstrap_servers).load()
    return sorted(row.value.decode() for row in frame.select("value").collect())
