"""The broker of a Kafka source restarts while a run reads; how near retention has come is in every record.

What a run does about offsets that are lost, topics made again and aborted transactions is shown in
tests/conformance/test_kafka_sources.py.
"""

from __future__ import annotations

import pytest

from drawdown.testing.servers.kafka import KafkaServer
from tests.support.frozen import frozen
from tests.support.sandbox import Sandbox, multiset
from tests.support.topics import Topic

SPEC = """
sources:
  records:
    format: kafka
    value: string
    options: {subscribe: TOPIC, maxOffsetsPerTrigger: 4}
transform: transform.sql
sink: {format: delta, path: tables/NAME, schema: out.ddl}
state: {partitions: 2}
"""
FILES = {
    "out_ddl": "value STRING, offset BIGINT",
    "transform_sql": "SELECT value, offset FROM records",
}


def _pipeline(sandbox: Sandbox, name: str, topic: Topic) -> None:
    sandbox.pipeline(name, SPEC.replace("TOPIC", topic.name).replace("NAME", name), **FILES)


@pytest.mark.full
@pytest.mark.fault("F32", "delta")
def test_the_broker_restarts_in_the_middle_of_a_drain(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    sandbox, topic = kafka_sandbox, Topic(broker, "restarted")
    for name in ("control", "restarted"):
        _pipeline(sandbox, name, topic)
    topic.write(["twin", "twin", *map(str, range(10))])
    with frozen(sandbox, "restarted", "after batch.note 2") as sleeper:
        broker.stop()
        broker.start()
        code, printed = sleeper.wake()
    assert code == 0 or "source.broker" in printed, printed
    assert "Traceback" not in printed
    if code:
        sandbox.run("restarted")
    sandbox.run("control")
    expected = multiset(sandbox.delta("tables/control"))
    assert expected.total() == 12
    assert multiset(sandbox.delta("tables/restarted")) == expected
    assert sandbox.drain("restarted")[0].run is None
