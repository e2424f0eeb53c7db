"""Send staged files to Kafka exactly once, in portions: each is one transaction with its own marker.

 1  init_transactions: the broker ends what a dead publish left open, and fences its producer if it lives
 2  read the ledger: the last marker shows how far the publishes have come, and under which lease
 3  per portion: check that the lease is still ours; send rows and marker in one transaction
After a publish dies, the next one continues from the last marker. A batch may take several transactions:
readers may see its first file before its second.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any

from drawdown.brokers.client import client_config
from drawdown.changes.protocol import Commit, Staged
from drawdown.errors import DrawdownError, RefusedError, SourceError
from drawdown.fault_points import durable
from drawdown.metastore.records import Change, Lease, StagedFile, lease_purpose
from drawdown.sinks.kafka.ledger import KafkaLedger, Marker
from drawdown.sinks.kafka.records import Portion, portions, refuse_reserved_topics, reserved_topics
from drawdown.spec import Broker, Pipeline, Project
from drawdown.spec.sink import Sink
from drawdown.storage import Storage

_SECONDS = 60.0
_CONFIG: Mapping[str, str | int | bool] = {
    "transaction.timeout.ms": int(_SECONDS * 1_000),
    # Kafka's Java clients, and so Spark's own writer, assign keys to partitions this way.
    "partitioner": "murmur2_random",
    "linger.ms": 50,
    "delivery.report.only.error": True,
}
# Options of Spark's writer that librdkafka calls by another name.
_OTHER_NAMES = {"max.request.size": "message.max.bytes"}
# librdkafka logs here what it also raises, so the log is dropped.
_SILENT = logging.getLogger(f"{__name__}.librdkafka")
_SILENT.propagate = False
_SILENT.addHandler(logging.NullHandler())


class KafkaTarget:
    """The topics of one pipeline's sink; see Target for the methods.

    Every question to it fences older producers of the same transaction id: only a lease's holder may ask.
    """

    based_on = None

    def __init__(self, storage: Storage, broker: Broker, pipeline: str, sink: Sink) -> None:
        self._storage = storage
        self._broker = broker
        self._ledger = KafkaLedger(broker, pipeline)
        self._topic = sink.topic
        given = {name.removeprefix("kafka."): value for name, value in sink.options.items()}
        self._options = {_OTHER_NAMES.get(name, name): value for name, value in given.items()}
        self._opened: dict[str, tuple[Any, Marker]] = {}

    def published_batch(self, app_id: str) -> int:
        return self._open(app_id)[1].published_batch

    def begun_batch(self, app_id: str) -> int:
        return self._open(app_id)[1].batch

    def holds(self, change: Change, app_id: str) -> bool:
        batches: list[int] = change.scope.get("batches", [])
        return bool(batches) and self.published_batch(app_id) >= max(batches)

    def fence(self, lease: Lease) -> None:
        """Do nothing: the earlier question of what was published has fenced every older producer."""

    def make_visible(self, staged: Staged, commit: Commit) -> None:
        producer, marker = self._open(commit.app_id)
        purpose = lease_purpose(commit.change.lease)
        if marker.purpose == purpose and marker.epoch > commit.epoch:
            raise self._overtaken(marker, commit)
        self._refuse_reserved_topics(staged)
        for batch_id, named in groupby(staged.files, key=lambda each: each[0]):
            files = [file for _, file in named if file.rows]
            if batch_id > marker.published_batch:
                marker = self._batch(producer, marker, batch_id, files, commit)
        self._opened[commit.app_id] = producer, marker

    def _refuse_reserved_topics(self, staged: Staged) -> None:
        """Judge the rows again: an older version may have staged them."""
        for _, file in staged.files if self._topic is None else ():
            refuse_reserved_topics(reserved_topics(self._storage, file), file.path)

    def _batch(
        self, producer: Any, marker: Marker, batch_id: int, files: Sequence[StagedFile], commit: Commit
    ) -> Marker:
        """Send the files of one batch after the marker, and return the new marker."""
        at, skip = self._reached(marker, batch_id, files)
        for number, file in enumerate(files[at:], start=at):
            for portion in portions(self._storage, file, skip):
                whole = number == len(files) - 1 and portion.until == file.rows
                purpose = lease_purpose(commit.change.lease)
                marker = Marker(batch_id, _name(file), portion.until, whole, commit.epoch, purpose)
                self._transact(producer, portion, marker, commit)
            skip = 0
        return marker

    def _reached(self, marker: Marker, batch_id: int, files: Sequence[StagedFile]) -> tuple[int, int]:
        """Return where to continue: the number of the file, and how many of its rows were sent."""
        if marker.batch != batch_id:
            return 0, 0
        names = [_name(file) for file in files]
        if marker.file not in names:
            raise RefusedError(
                "sink.other-files",
                f"readers see a part of batch {batch_id}, from a file that is not among its staged ones",
                where=f"{marker.file}, topic {self._ledger.topic}",
                do="restore the newest copy of the metastore, which names that file",
            )
        return names.index(marker.file), marker.rows

    def _transact(self, producer: Any, portion: Portion, marker: Marker, commit: Commit) -> None:
        """Send rows and marker in one transaction."""
        commit.still_ours()
        with durable("publish.file"), self._speaking(producer, commit):
            producer.begin_transaction()
            with durable("publish.send"):
                for key, value, topic, partition, headers in portion.records():
                    place = {} if partition is None else {"partition": partition}
                    producer.produce(topic or self._topic, value, key, headers=headers, **place)
                producer.flush(_SECONDS)
            producer.produce(self._ledger.topic, marker.as_bytes(), commit.app_id, 0)
            producer.commit_transaction(_SECONDS)

    def _open(self, app_id: str) -> tuple[Any, Marker]:
        """Return a producer that has fenced all earlier ones, and the last marker of those."""
        from confluent_kafka import Producer

        if app_id not in self._opened:
            settings = {**client_config(self._broker), **_CONFIG, **self._options}
            with self._speaking():
                producer = Producer({**settings, "transactional.id": app_id}, logger=_SILENT)
                producer.init_transactions(_SECONDS)
                self._opened[app_id] = producer, self._ledger.last_marker(app_id, _SECONDS + 15)
        return self._opened[app_id]

    @contextmanager
    def _speaking(self, producer: Any = None, commit: Commit | None = None) -> Iterator[None]:
        """Abort the transaction after a failure, if the broker still answers, and raise one clear error."""
        from confluent_kafka import KafkaError, KafkaException

        try:
            yield
        except (KafkaException, BufferError) as cause:
            error = cause.args[0] if isinstance(cause, KafkaException) else None
            self._opened.clear()
            if error is None or not error.fatal():
                self._abort(producer)
            elif commit is not None and error.code() in (
                KafkaError._FENCED,
                KafkaError.INVALID_PRODUCER_EPOCH,
            ):
                commit.still_ours()
            raise self._failed(error.str() if error is not None else str(cause)) from None
        except DrawdownError:
            raise
        except BaseException:
            self._abort(producer)
            raise

    def _abort(self, producer: Any) -> None:
        """Abort, so that readers get past this transaction before the next publish or the timeout."""
        from confluent_kafka import KafkaException

        if producer is not None:
            with suppress(KafkaException):
                producer.abort_transaction(5)

    def _failed(self, said: str) -> SourceError:
        return SourceError(
            "sink.broker",
            f"the broker did not take the rows: {said}",
            where=f"topic {self._topic or 'of each row'}, {self._broker.bootstrap_servers}",
            do="check the broker, its topics and its user's rights, then run again: rows that were sent"
            " are not sent again",
        )

    def _overtaken(self, marker: Marker, commit: Commit) -> RefusedError:
        return RefusedError(
            "lease.lost",
            f"a newer holder of the lease (epoch {marker.epoch}, this is {commit.epoch}) has written already",
            where=f"topic {self._ledger.topic}, {self._broker.bootstrap_servers}",
            do="nothing was written; see the newer run with `drawdown runs`",
        )


def _name(file: StagedFile) -> str:
    return PurePosixPath(file.path).name


def output_target(project: Project, pipeline: Pipeline, keys: Sequence[str]) -> KafkaTarget:
    """Return the target of the pipeline's sink; a publish to Kafka needs no `keys`."""
    broker = project.brokers[pipeline.sink.broker]
    return KafkaTarget(Storage.of(project), broker, pipeline.name_in_sink, pipeline.sink)
