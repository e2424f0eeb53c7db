"""The ledger of a Kafka sink: a compacted topic for each pipeline, with a marker in every transaction.

It is a topic, not a consumer group's offset: offsets expire (offsets.retention.minutes; with a value of 1 the
offset was gone after a minute), and a pipeline may run once a quarter. Each pipeline has its own topic: a
reader of committed records stops at the first open transaction of a partition, whoever opened it, and would
miss its own marker after that (seen with Kafka 4.3).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from drawdown.brokers.client import client_config
from drawdown.brokers.offsets import topic_ids
from drawdown.errors import RefusedError, SourceError
from drawdown.spec import Broker
from drawdown.values.json_text import read_json
from drawdown.values.kafka_names import ledger_topic

_SECONDS = 20.0
# Small segments, cleaned early: each publish first reads the whole topic.
_CONFIG = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.1"}


@dataclass(frozen=True)
class Marker:
    """How far a pipeline has published; each transaction writes one marker along with its rows.

    Attributes:
        batch: the last batch with rows that readers see; -1 before the first.
        file: the name of that batch's last file with rows that readers see.
        rows: how many rows of that file readers see.
        whole: whether readers see the whole batch.
        epoch: the epoch of the lease under which the marker was written.
        purpose: of that lease, see `lease_purpose`; each lease counts its epochs by itself.
    """

    batch: int = -1
    file: str = ""
    rows: int = 0
    whole: bool = True
    epoch: int = 0
    purpose: str = ""

    @property
    def published_batch(self) -> int:
        """Return the last batch that readers see completely, or -1."""
        return self.batch if self.whole else self.batch - 1

    def as_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def of(cls, value: bytes) -> Marker:
        """Return the marker that a record holds. Raises ValueError for a record that is none of ours."""
        found = read_json(value)
        kinds = {each.name: type(each.default) for each in fields(cls)}
        ours = isinstance(found, dict) and {"batch", "file", "rows"} <= found.keys() <= kinds.keys()
        if not ours or any(type(part) is not kinds[name] for name, part in found.items()):
            raise ValueError("no marker")
        if min(found["batch"], found["rows"], found.get("epoch", 0)) < 0:
            raise ValueError("a negative number")
        return cls(**found)


@dataclass(frozen=True)
class KafkaLedger:
    """One pipeline's ledger; the key of a marker is the transaction id.

    Raises (from every method):
        KafkaException: the broker does not answer, or refuses.
    """

    broker: Broker
    pipeline: str

    @property
    def topic(self) -> str:
        return ledger_topic(self.pipeline)

    def topic_id(self) -> str | None:
        """Return the id that the broker gave the topic at its creation; None when there is no topic."""
        return topic_ids(self.broker, [self.topic]).get(self.topic)

    def create(self) -> str:
        """Create the topic with the broker's default number of replicas, and return its id."""
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
        """Return the last committed marker; markers of open transactions are not seen."""
        return self._read(app_id)[0]

    def last_marker(self, app_id: str, patience: float) -> Marker:
        """Wait until no transaction is open and return the last marker; call init_transactions before.

        Args:
            patience: seconds to wait for a transaction that another generation's dead publish left open.

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
            f"the ledger of {self.pipeline} is missing: it is unknown which rows readers have seen",
            where=f"topic {self.topic}, {self.broker.bootstrap_servers}",
            do="restore the topic, or make a new pipeline folder: its rows come after the existing ones",
        )

    def _marker(self, record: Any) -> Marker:
        try:
            return Marker.of(record.value())
        except ValueError:
            raise RefusedError(
                "sink.ledger-damaged",
                f"record {record.offset()} in the ledger of {self.pipeline} is no marker of Drawdown's: it is"
                " unknown which rows readers have seen",
                where=f"topic {self.topic}, {self.broker.bootstrap_servers}",
                do="let only Drawdown's user write to topics with the prefix drawdown-ledger.; then restore"
                " the topic without that record, or make a new pipeline folder: its rows come after the"
                " existing ones",
            ) from None

    def _end(self) -> int:
        """Return the offset after the last record, committed or not."""
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

        asked = {TopicPartition(self.topic, 0): OffsetSpec.latest()}  # type: ignore[no-untyped-call]
        client = AdminClient(client_config(self.broker))
        [answer] = client.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED).values()
        return int(answer.result(_SECONDS).offset)

    def _read(self, app_id: str) -> tuple[Marker, int]:
        """Return the last committed marker of this id, and the offset before which no transaction is open."""
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
                    marker = self._marker(record)
        finally:
            consumer.close()


_READING: Mapping[str, str | int | bool] = {
    "group.id": "drawdown-ledger",  # librdkafka requires one; no offset is committed under it
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 10,
}
