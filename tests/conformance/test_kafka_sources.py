"""SRC: Kafka sources, against a real broker."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from drawdown.errors import SourceError
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.refusals import refused, refused_spec
from tests.support.sandbox import Sandbox
from tests.support.topics import Topic
from tests.support.verdicts import verdicts

SPEC = """
sources:
  records: {{format: kafka, value: string, options: {options}}}
transform: transform.sql
sink: {{format: delta, path: tables/out, schema: out.ddl}}
state: {{partitions: 2}}
"""


def _pipeline(sandbox: Sandbox, sql: str = "SELECT value FROM records", **options: Any) -> None:
    sandbox.pipeline(
        "records",
        SPEC.format(options=json.dumps(options)),
        out_ddl="value STRING" if "*" not in sql else "value STRING, place STRING",
        transform_sql=sql.replace("*", "value, concat(topic, '/', partition, '/', offset) AS place"),
    )


def read(sandbox: Sandbox) -> str:
    """The values in the table, one letter each."""
    return "".join(value for value, *_ in sandbox.delta("tables/out"))


NOW = int(time.time()) * 1_000
OLD, YOUNG = NOW - 7_200_000, NOW - 3_600_000
# Options, and what the first run reads of a, c (old) and b, d (younger): c and d are in partition 1.
STARTS: dict[str, tuple[dict[str, Any], str]] = {
    "subscribe": ({"subscribe": "TOPIC"}, "abcd"),
    "pattern": ({"subscribePattern": "src12-patt.*"}, "abcd"),
    "assign": ({"assign": {"TOPIC": [0]}}, "ab"),
    "earliest": ({"subscribe": "TOPIC", "startingOffsets": "earliest"}, "abcd"),
    "latest": ({"subscribe": "TOPIC", "startingOffsets": "latest"}, ""),
    "offsets": ({"subscribe": "TOPIC", "startingOffsets": {"TOPIC": {"0": 1, "1": -2}}}, "bcd"),
    "timestamp": ({"subscribe": "TOPIC", "startingTimestamp": YOUNG}, "bd"),
    "timestamps": (
        {"subscribe": "TOPIC", "startingOffsetsByTimestamp": {"TOPIC": {"0": YOUNG, "1": OLD}}},
        "bcd",
    ),
    "strategy": (
        {
            "subscribe": "TOPIC",
            "startingTimestamp": NOW + 3_600_000,
            "startingOffsetsByTimestampStrategy": "latest",
        },
        "",
    ),
}


@pytest.mark.sampled
@pytest.mark.conformance("SRC-12")
@pytest.mark.parametrize("start", STARTS)
def test_topics_and_where_the_first_run_starts(
    kafka_sandbox: Sandbox, broker: KafkaServer, start: str
) -> None:
    topic = Topic(broker, f"src12-{start}", partitions=2)
    topic.write(["a"], at_ms=OLD)
    topic.write(["b"], at_ms=YOUNG)
    topic.write(["c"], at_ms=OLD, partition=1)
    topic.write(["d"], at_ms=YOUNG, partition=1)
    given, first = STARTS[start]
    options = {
        name: json.dumps(value).replace("TOPIC", topic.name) if isinstance(value, dict) else value
        for name, value in given.items()
    }
    options = {name: topic.name if value == "TOPIC" else value for name, value in options.items()}
    _pipeline(kafka_sandbox, **options)
    kafka_sandbox.run("records")
    assert read(kafka_sandbox) == first
    assert kafka_sandbox.drain("records")[0].run is None, "the preflight knows where the first run began"

    topic.write(["e"])
    topic.write(["f"], partition=1)
    kafka_sandbox.run("records")
    assert read(kafka_sandbox) == first + ("e" if start == "assign" else "ef")


@pytest.mark.full
@pytest.mark.conformance("SRC-13")
def test_bounds_of_a_batch_headers_and_consumer_options(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    topic = Topic(broker, "src13-options")
    _pipeline(
        kafka_sandbox,
        "SELECT concat_ws(' ', value, headers[0].key, string(headers[0].value)) AS value,"
        " string(spark_partition_id()) AS place FROM records -- *",
        **{
            "subscribe": topic.name,
            "maxOffsetsPerTrigger": 8,
            "minPartitions": 4,
            "includeHeaders": True,
            "groupIdPrefix": "src13-prefix",
            "kafka.max.poll.records": 3,
        },
    )
    topic.write([f"{n:02}" for n in range(20)], headers={"origin": "EWR"})
    run = kafka_sandbox.run("records")
    assert run.batches > 1, "maxOffsetsPerTrigger"
    topic.write(["20"], headers={"origin": "EWR"})
    kafka_sandbox.run("records")
    rows = kafka_sandbox.delta("tables/out")
    assert [value for value, _ in rows] == [f"{n:02} origin EWR" for n in range(21)]
    assert len({place for _, place in rows}) == 4, "minPartitions"
    assert any("src13-prefix" in id for id in _consumer_ids(kafka_sandbox)), "groupIdPrefix"


def _consumer_ids(sandbox: Sandbox) -> list[str]:
    """The ids of the Kafka consumers that Spark keeps open, as Java's management beans show them."""
    assert sandbox.spark is not None
    jvm: Any = sandbox.spark._jvm
    server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    asked = sandbox.spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 2)
    asked[0] = jvm.javax.management.ObjectName("kafka.consumer:type=app-info,*")
    # By reflection on the interface: the class of the server is not open to Py4J.
    methods = jvm.java.lang.Class.forName("javax.management.MBeanServer").getMethods()
    (query,) = [method for method in methods if method.getName() == "queryNames"]
    return [str(name) for name in query.invoke(server, asked).toArray()]


@pytest.mark.full
@pytest.mark.conformance("SRC-13")
def test_few_records_wait_for_more_or_for_the_delay(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    """Spark forgets with each run when it read last; the preflight does not, and starts no run for them."""
    topic = Topic(broker, "src13-few")
    _pipeline(kafka_sandbox, subscribe=topic.name, minOffsetsPerTrigger=3, maxTriggerDelay="1h")
    topic.write("a")
    kafka_sandbox.run("records")
    topic.write("bc")
    assert kafka_sandbox.drain("records")[0].run is None, "2 of 3 records wait"
    topic.write("d")
    kafka_sandbox.run("records")
    assert read(kafka_sandbox) == "abcd"

    topic.write("e")
    assert kafka_sandbox.drain("records")[0].run is None
    _pipeline(kafka_sandbox, subscribe=topic.name, minOffsetsPerTrigger=3, maxTriggerDelay="10ms")
    kafka_sandbox.run("records")
    assert read(kafka_sandbox) == "abcde", "the delay is over"


@pytest.mark.full
@pytest.mark.conformance("SRC-13")
def test_a_rest_below_the_least_is_left_for_a_later_run(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    topic = Topic(broker, "src13-rest")
    bounds = {"minOffsetsPerTrigger": 4, "maxOffsetsPerTrigger": 5}
    _pipeline(kafka_sandbox, subscribe=topic.name, maxTriggerDelay="1h", **bounds)
    topic.write("abcdefgh")
    first = kafka_sandbox.run("records")
    assert 4 <= first.counts.read < 8
    assert kafka_sandbox.drain("records")[0].run is None, "the rest waits for more"
    topic.write("ijkl")
    kafka_sandbox.run("records")
    kept = read(kafka_sandbox)
    assert "abcdefghijkl".startswith(kept)
    assert len(kept) > 8


@pytest.mark.sampled
@pytest.mark.conformance("SRC-13")
@pytest.mark.fault("F33", "delta")
@pytest.mark.parametrize(("level", "values"), [("", "ad"), ("read_uncommitted", "abcd")])
def test_aborted_transactions_are_no_data_unless_asked_for(
    kafka_sandbox: Sandbox, broker: KafkaServer, level: str, values: str
) -> None:
    topic = Topic(broker, f"src13-transactions-{level}")
    _pipeline(kafka_sandbox, subscribe=topic.name, **({"kafka.isolation.level": level} if level else {}))
    topic.write_in_transaction("a", commit=True)
    topic.write_in_transaction("bc", commit=False)
    first = kafka_sandbox.run("records")
    topic.write_in_transaction("d", commit=True)
    second = kafka_sandbox.run("records")
    assert read(kafka_sandbox) == values
    assert first.counts.read + second.counts.read == len(values)


REFUSED = {
    "kafka.sasl.jaas.config": ({"kafka.sasl.jaas.config": "x"}, "spec.unknown-option"),
    "kafka.group.id": ({"kafka.group.id": "mine"}, "spec.unknown-option"),
    "kafka.interceptor.classes": ({"kafka.interceptor.classes": "x"}, "spec.unknown-option"),
    "delay alone": ({"maxTriggerDelay": "5m"}, "spec.no-effect"),
    "least above most": ({"minOffsetsPerTrigger": 9, "maxOffsetsPerTrigger": 8}, "spec.contradiction"),
    "two starts": ({"startingOffsets": "latest", "startingTimestamp": 1}, "spec.contradiction"),
    "strategy alone": ({"startingOffsetsByTimestampStrategy": "latest"}, "spec.no-effect"),
    "no offsets": ({"startingOffsets": '{"t": 5}'}, "spec.wrong-value"),
}


@pytest.mark.conformance("SRC-13")
@pytest.mark.parametrize("case", REFUSED)
def test_options_that_have_no_effect_or_do_harm_are_refused(sandbox: Sandbox, case: str) -> None:
    options, error = REFUSED[case]
    text = SPEC.format(options=json.dumps({"subscribe": "t", **options}))
    found = refused_spec(sandbox, "records", text, error, transform_sql="SELECT 1", out_ddl="value STRING")
    assert next(iter(options)) in str(found) or case == "two starts"


@pytest.mark.full
@pytest.mark.conformance("SRC-14")
def test_new_partitions_are_read_from_their_start(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    topic = Topic(broker, "src14-grows")
    _pipeline(kafka_sandbox, "SELECT * FROM records", subscribe=topic.name, startingOffsets="latest")
    kafka_sandbox.run("records")
    topic.write("a")
    kafka_sandbox.run("records")
    topic.grow(2)
    topic.write("bc", partition=1)
    kafka_sandbox.run("records")
    assert kafka_sandbox.delta("tables/out") == [
        ("a", "src14-grows/0/0"),
        ("b", "src14-grows/1/0"),
        ("c", "src14-grows/1/1"),
    ]


def _expire(topic: Topic) -> None:
    topic.write("defg")
    topic.expire(before=5)


def _shorter(topic: Topic) -> None:
    topic.make_again()
    topic.write("xy")


def _longer(topic: Topic) -> None:
    topic.make_again()
    topic.write("uvwxyz")


# What happens after offsets 0 to 2 were read; the range that is lost; what is read of it all, and then.
LOSSES = {
    "expired": (_expire, "offsets 3 to 4 are lost", (3, 5), "abcfg"),
    "made-again-shorter": (_shorter, "offsets 0 to 1 are lost", (0, 2), "abc"),
    "made-again-longer": (_longer, "offsets 0 to 2 are lost", (0, 3), "abcxyz"),
}


@pytest.mark.conformance("SRC-14")
@pytest.mark.fault("F30", "delta")
def test_the_record_of_a_run_says_how_near_retention_has_come(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    topic = Topic(broker, "src14-headroom")
    _pipeline(kafka_sandbox, subscribe=topic.name)
    topic.write("abcde")
    kafka_sandbox.run("records")
    topic.expire(before=3)
    topic.write("f")
    [notice] = kafka_sandbox.run("records").notices
    assert (notice["id"], notice["about"]) == ("source.headroom", "records")
    assert "could delete 2 more offsets" in notice["what"]
    assert read(kafka_sandbox) == "abcdef"


@pytest.mark.conformance("SRC-14")
@pytest.mark.parametrize(
    "how",
    [
        pytest.param("expired", marks=[pytest.mark.fault("F30", "delta"), pytest.mark.full]),
        pytest.param("made-again-shorter", marks=[pytest.mark.fault("F31", "delta"), pytest.mark.full]),
        pytest.param("made-again-longer", marks=pytest.mark.fault("F31", "delta")),
    ],
)
def test_lost_offsets_end_the_run_or_are_counted(
    kafka_sandbox: Sandbox, broker: KafkaServer, how: str
) -> None:
    lose, said, (first, after), values = LOSSES[how]
    topic = Topic(broker, f"src14-{how}")
    _pipeline(kafka_sandbox, subscribe=topic.name)
    topic.write("abc")
    kafka_sandbox.run("records")
    lose(topic)
    error = refused(kafka_sandbox, "records", "source.data-lost", SourceError)
    assert f"partition 0 of topic {topic.name}" in error.what
    assert said in error.what
    assert "failOnDataLoss: false" in error.do

    _pipeline(kafka_sandbox, subscribe=topic.name, failOnDataLoss=False)
    assert said in verdicts(kafka_sandbox, "records")["source.data-lost"].what
    run = kafka_sandbox.run("records")
    assert run.counts.lost == after - first
    assert _lost(kafka_sandbox) == [
        {"topic": topic.name, "partition": 0, "first": first, "after": after, "offsets": after - first}
    ]
    topic.write("0")
    again = kafka_sandbox.run("records")
    assert again.counts.lost == 0, "it is counted once"
    assert read(kafka_sandbox) == "".join(sorted("0" + values))


def _lost(sandbox: Sandbox) -> list[dict[str, Any]]:
    with sandbox.metastore() as metastore:
        batches = metastore.batches("records", 1)
    return [entry for batch in batches for entry in batch.by_source["records"].get("lost", [])]


@pytest.mark.full
@pytest.mark.conformance("SRC-14")
def test_a_topic_that_is_gone_ends_the_run_at_once(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    topic = Topic(broker, "src14-gone")
    _pipeline(kafka_sandbox, subscribe=topic.name)
    topic.write("abc")
    kafka_sandbox.run("records")
    topic.delete()
    error = refused(kafka_sandbox, "records", "source.data-lost", SourceError)
    assert "its records from offset 3 on are lost" in error.what

    topic.create()
    topic.write("d")
    refused(kafka_sandbox, "records", "source.data-lost", SourceError)
    _pipeline(kafka_sandbox, subscribe=topic.name, failOnDataLoss=False)
    kafka_sandbox.run("records")
    topic.write("e")
    kafka_sandbox.run("records")
    assert read(kafka_sandbox) == "abce"
    assert [(lost["first"], lost["after"]) for lost in _lost(kafka_sandbox)] == [(0, 1)]
