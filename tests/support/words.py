"""A pipeline from one topic to another, word by word in capitals: what Spark's own sink can do alone."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from drawdown.checkpoint import CheckpointFiles
from drawdown.storage import Storage
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.sandbox import Sandbox

_SPEC = """
sources:
  words: {{format: kafka, options: {{subscribe: {topic}_in}}, value: string}}
transform: transform.sql
sink: {{format: kafka, delivery: at_least_once, topic: {topic}_out{sink}}}
state: {{partitions: 2}}
"""
_UPPER = "SELECT upper(value) AS value FROM words"
_SECONDS = 30.0


class Words:
    """The pipeline ``words`` and its two topics, which are there when the constructor returns."""

    def __init__(self, sandbox: Sandbox, broker: KafkaServer, topic: str) -> None:
        self._sandbox = sandbox
        self._servers = {"bootstrap.servers": broker.bootstrap_servers}
        self._topic = topic
        made = [NewTopic(f"{topic}_{end}", 1) for end in ("in", "out")]
        admin = AdminClient(self._servers)
        for done in admin.create_topics(made).values():
            done.result(_SECONDS)
        self.sent: list[str] = []
        self.spec()

    def spec(self, sink: str = "", transform: str = _UPPER, name: str = "words") -> None:
        """Write the pipeline's folder, or that of another one; `sink`: further keys of the sink."""
        text = _SPEC.format(topic=self._topic, sink=sink and f", {sink}")
        self._sandbox.pipeline(name, text, transform_sql=transform)

    def send(self, *words: str) -> None:
        producer = Producer(self._servers)
        for word in words:
            producer.produce(f"{self._topic}_in", word)
        assert producer.flush(_SECONDS) == 0
        self.sent += words

    def records(self) -> list[str]:
        """What the output topic holds, in its order."""
        topic = f"{self._topic}_out"
        consumer = Consumer({**self._servers, "group.id": uuid4().hex, "enable.auto.commit": False})
        try:
            first, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_SECONDS)
            consumer.assign([TopicPartition(topic, 0, first)])
            found: list[Any] = []
            while len(found) < end - first:
                found += consumer.consume(end - first - len(found), timeout=_SECONDS)
            return [message.value().decode() for message in found]
        finally:
            consumer.close()

    @property
    def checkpoint(self) -> CheckpointFiles:
        with self._sandbox.metastore() as metastore:
            active = metastore.active_checkpoint("words")
        assert active is not None
        return CheckpointFiles(Storage(self._sandbox.project.storage_root), active.path)

    @property
    def committed(self) -> int:
        """How many records of the input the checkpoint holds for done."""
        last = self.checkpoint.last_commit_batch()
        if last is None:
            return 0
        [offsets] = self.checkpoint.offsets(last).offsets
        return int(offsets[f"{self._topic}_in"]["0"])
