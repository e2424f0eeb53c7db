"""The ledger of a Kafka sink: a compacted topic of each pipeline, with a marker in every transaction.

A topic, not a consumer group's offset: offsets expire (offsets.retention.minutes, seen after one minute
where that was one), and a pipeline may run once a quarter. One topic a pipeline, not one for all: a
reader of committed records stops at the first open transaction of a partition, whoever's it is, and would
not see its own marker behind it (seen with Kafka 4.3).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from drawdown.brokers.client import client_config
from drawdown.brokers.offsets import topic_ids
from drawdown.errors import RefusedError, SourceError
from drawdown.spec import Broker

_SECONDS = 20.0
# Small segments, cleaned early: the whole of it is read before each publish.
_CONFIG = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.1"}


@dataclass(frozen=True)
class Marker:
    """How far a pipeline's transactions have come; one goes along with the rows of each of them.

    Attributes:
        batch: the last batch of which readers see anything; -1 before the first.
        file: the name of its last file that they see anything of.
        rows: how many rows of that file.
        whole: whether that was the last of the batch.
        epoch: of the lease under which it was written.
    """

    batch: int = -1
    file: str = ""
    rows: int = 0
    whole: bool = True
    epoch: int = 0

    @property
    def published_batch(self) -> int:
        """The last batch that readers see whole, or -1."""
        return self.batch if self.whole else self.batch - 1

    def as_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def of(cls, value: bytes) -> Marker:
        return cls(**json.loads(value))


def ledger_topic(pipeline: str) -> str:
    """The name of a pipeline's ledger."""
    return f"drawdown-ledger.{pipeline}"


@dataclass(frozen=True)
class KafkaLedger:
    """One pipeline's ledger; markers have its transaction id as their key.

    Raises (from every method):
        KafkaException: the broker does not answer, or refuses.
    """

    broker: Broker
    pipeline: str

    @property
    def topic(self) -> str:
        return ledger_topic(self.pipeline)

    def topic_id(self) -> str | None:
        """The id that the broker gave the topic when it was made; None when there is none."""
        return topic_ids(self.broker, [self.topic]).get(self.topic)

    def create(self) -> str:
        """Make the topic, with as many replicas as the broker gives a topic; its id."""
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        client = AdminClient(client_config(self.broker))
        made = client.create_topics([NewTopic(self.topic, num_partitions=1, config=_CONFIG)])
        made[self.topic].result(_SECONDS)
        patience = time.monotonic() + _SECONDS
        while (found := self.topic_id()) is None:
            if time.monotonic() > patience:
                raise self._missing()
            time.sleep(0.1)
        return found

    def marker(self, app_id: str) -> Marker:
        """The last marker that is committed; what a transaction that is still open holds is not seen."""
        return self._read(app_id)[0]

    def last_marker(self, app_id: str, patience: float) -> Marker:
        """The last marker, when every transaction in the ledger is decided; call it after init_transactions.

        Args:
            patience: seconds to wait for one that another generation's dead publish has left open.

        Raises:
            RefusedError: ``sink.missing``: the ledger is gone.
            SourceError: ``sink.broker``: a transaction stays open.
        """
        if self.topic_id() is None:
            raise self._missing()
        deadline = time.monotonic() + patience
        while True:
            end = self._end()
            marker, position = self._read(app_id)
            if position >= end:
                return marker
            if time.monotonic() > deadline:
                raise SourceError(
                    "sink.broker",
                    f"a transaction of another publish stays open in {self.topic}",
                    where=self.broker.bootstrap_servers,
                    do="run again: the broker ends it after its timeout (kafka-transactions.sh find-hanging)",
                )
            time.sleep(0.5)

    def _missing(self) -> RefusedError:
        return RefusedError(
            "sink.missing",
            f"the ledger of {self.pipeline} is gone: what its readers have seen is unknown",
            where=f"topic {self.topic}, {self.broker.bootstrap_servers}",
            do="restore the topic, or make a new pipeline folder: its rows come behind those that are there",
        )

    def _end(self) -> int:
        """The offset behind the last record, committed or not."""
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

        asked = {TopicPartition(self.topic, 0): OffsetSpec.latest()}  # type: ignore[no-untyped-call]
        client = AdminClient(client_config(self.broker))
        [answer] = client.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED).values()
        return int(answer.result(_SECONDS).offset)

    def _read(self, app_id: str) -> tuple[Marker, int]:
        """The last committed marker of this id, and the offset up to which all transactions are decided."""
        from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

        consumer = Consumer({**client_config(self.broker), **_READING})
        marker = Marker()
        try:
            consumer.assign([TopicPartition(self.topic, 0, 0)])
            while True:
                record: Any = consumer.poll(_SECONDS)
                if record is None:
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the ledger cannot be read"))
                if record.error() is not None:
                    if record.error().code() == KafkaError._PARTITION_EOF:
                        return marker, int(record.offset())
                    raise KafkaException(record.error())
                if record.key() == app_id.encode() and record.value():
                    marker = Marker.of(record.value())
        finally:
            consumer.close()


_READING: Mapping[str, str | int | bool] = {
    "group.id": "drawdown-ledger",  # librdkafka asks for one; nothing is committed under it
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 10,
}
