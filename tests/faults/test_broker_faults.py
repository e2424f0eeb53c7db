"""The broker of a Kafka source restarts while a run reads; how near retention has come is in every record.

What a run does about offsets that are lost, topics made again and aborted transactions is shown in
tests/conformance/test_kafka_sources.py.
"""

from __future__ import annotations

import pytest

from drawdown.machine.broker import Broker
from tests.support.frozen import frozen
from tests.support.topics import Topic
from tests.support.workspace import Workspace, multiset

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


def _pipeline(workspace: Workspace, name: str, topic: Topic) -> None:
    workspace.pipeline(name, SPEC.replace("TOPIC", topic.name).replace("NAME", name), **FILES)


@pytest.mark.fault("F32", "delta")
def test_the_broker_restarts_in_the_middle_of_a_drain(kafka_workspace: Workspace, broker: Broker) -> None:
    workspace, topic = kafka_workspace, Topic(broker, "restarted")
    for name in ("control", "restarted"):
        _pipeline(workspace, name, topic)
    topic.write(["twin", "twin", *map(str, range(10))])
    with frozen(workspace, "restarted", "after batch.note 2") as sleeper:
        broker.stop()
        broker.start()
        code, printed = sleeper.wake()
    assert code == 0 or "source.broker" in printed, printed
    assert "Traceback" not in printed
    if code:
        workspace.run("restarted")
    workspace.run("control")
    expected = multiset(workspace.delta("tables/control"))
    assert expected.total() == 12
    assert multiset(workspace.delta("tables/restarted")) == expected
    assert workspace.drain("restarted")[0].run is None
