"""Kafka, exactly once: rows wait in files until a publish sends them in transactions (publish.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import KafkaException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from drawdown.brokers.client import no_answer, require_broker
from drawdown.changes.protocol import transaction_id
from drawdown.errors import DrawdownError, RefusedError, TransformError
from drawdown.metastore.records import Checkpoint, StagedFile
from drawdown.sinks.kafka.ledger import KafkaLedger
from drawdown.sinks.kafka.records import refuse_reserved_topics, reserved_topics, rows_without
from drawdown.sinks.kafka.spark_record_columns import refuse_columns
from drawdown.sinks.spark_staged import StagedFilesSink
from drawdown.sinks.spark_uncommitted import execute
from drawdown.spec import Pipeline
from drawdown.values.text import counted
from drawdown.workspace import Workspace

_IDENTITY = "ledger "


class ExactlyOnceKafkaSink(StagedFilesSink):
    """One topic (``topic:``), or the topic that each row names; the ledger's topic id identifies the sink."""

    def __init__(self, workspace: Workspace, pipeline: Pipeline) -> None:
        super().__init__(workspace, pipeline)
        self._metastore = workspace.metastore
        self._broker = workspace.project.brokers[pipeline.sink.broker]
        self._ledger = KafkaLedger(self._broker, pipeline.name_in_sink)

    def check_target(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        refuse_columns(self._pipeline, schema)
        require_broker(self._broker, "sink.broker", f"the sink of {self._pipeline.name}")
        with self._asking():
            found = self._ledger.topic_id()
            if found is None:
                self._refuse_a_lost_ledger(checkpoint)
                return None
            if checkpoint is None:
                self._refuse_markers()
        return _IDENTITY + found

    def bind_target(self, schema: StructType, checkpoint: Checkpoint | None) -> str:
        identity = self.check_target(schema, checkpoint)
        if identity is not None:
            return identity
        with self._asking():
            return _IDENTITY + self._ledger.create()

    def holds(self, generation: int, batch_id: int) -> bool:
        """Whether the batch was recorded: it then keeps its files, as readers may see the first already."""
        return self._noted(generation, batch_id) is not None

    def write(self, frame: DataFrame, generation: int, batch_id: int) -> list[StagedFile]:
        noted = self._noted(generation, batch_id)
        if noted is None:
            return super().write(frame, generation, batch_id)
        execute(frame)
        return noted

    def refuse_rows(self, staged: Sequence[StagedFile], batch_id: int) -> None:
        if self._pipeline.sink.topic is not None:
            return
        nameless = sum(rows_without(self._storage, file, "topic") for file in staged)
        if nameless:
            raise TransformError(
                "sink.no-topic",
                f"no topic for {counted(nameless, 'row')} of batch {batch_id}: the column `topic` is NULL",
                where=str(self._pipeline.folder / self._pipeline.transform),
                do="give each row a topic, or filter these rows out in the transform",
            )
        for file in staged:
            refuse_reserved_topics(reserved_topics(self._storage, file), f"pipeline {self._pipeline.name}")

    def _noted(self, generation: int, batch_id: int) -> list[StagedFile] | None:
        batch = self._metastore.batch(self._pipeline.name, generation, batch_id)
        if batch is None or batch.status == "discarded":
            return None
        found = self._metastore.staged_files(self._pipeline.name, generation, [batch_id], table="output")
        return [file for _, file in found]

    def _refuse_a_lost_ledger(self, checkpoint: Checkpoint | None) -> None:
        known = checkpoint is not None and str(checkpoint.fingerprint.get("sink.identity", ""))
        if known and known.startswith(_IDENTITY):
            raise RefusedError(
                "sink.missing",
                f"the checkpoint of {self._pipeline.name} belongs to a ledger that no longer exists",
                where=f"topic {self._ledger.topic}, {self._broker.bootstrap_servers}",
                do="restore the topic: without it, it is unknown which rows readers have seen; or make a"
                " new pipeline folder",
            )

    def _refuse_markers(self) -> None:
        marker = self._ledger.marker(transaction_id(self._pipeline.name_in_sink, 1, "output"))
        if marker.batch >= 0:
            raise RefusedError(
                "sink.not-ours",
                f"{self._pipeline.name} has never run here, but its ledger says that batches up to"
                f" {marker.batch} were sent: they would be skipped",
                where=f"topic {self._ledger.topic}, {self._broker.bootstrap_servers}",
                do="restore the checkpoint and metastore that belong to it, or give the pipeline another"
                " name; if the ledger is no longer used, delete the topic",
            )

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as cause:
            raise self._refused(cause) from None

    def _refused(self, cause: KafkaException) -> DrawdownError:
        error = cause.args[0]
        if "AUTHORIZATION" not in error.name():
            return no_answer(self._broker, "sink.broker", f"the sink of {self._pipeline.name}", cause)
        return RefusedError(
            "sink.forbidden",
            f"the broker does not let {self._pipeline.name} keep its ledger: {error.str()}",
            where=f"topic {self._ledger.topic}, {self._broker.bootstrap_servers}",
            do="grant its user Create, Describe, Read and Write on topics with the prefix drawdown-ledger."
            " and Write and Describe on transactional ids with the prefix drawdown/, or say"
            " `delivery: at_least_once`",
        )
