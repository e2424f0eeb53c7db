"""Kafka: each batch is sent by Spark's own Kafka writer, one record a row. At least once."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from drawdown.brokers.client import require_broker
from drawdown.errors import SourceError
from drawdown.metastore.records import Checkpoint
from drawdown.sinks.batch_token import BatchToken
from drawdown.sinks.kafka.spark_record_columns import refuse_columns, refusing_reserved_topics
from drawdown.sinks.spark_delivering import DeliveringSink
from drawdown.spark.query_failures import from_spark
from drawdown.spark.session import option_text
from drawdown.spec import Broker
from drawdown.spec.connections.broker_options import spark_options

# Half of the producer's defaults, which take two minutes to give up on a batch.
_PATIENCE = {"kafka.max.block.ms": "30000", "kafka.delivery.timeout.ms": "60000"}


class KafkaSink(DeliveringSink):
    """One topic (``topic:``), or the topic that each row names."""

    def check(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        refuse_columns(self._pipeline, schema)
        require_broker(self._broker, "sink.broker", f"the sink of {self._pipeline.name}")
        return super().check(schema, checkpoint)

    def deliver(self, frame: DataFrame, token: BatchToken) -> None:
        sink = self._pipeline.sink
        writer = (
            refusing_reserved_topics(frame)
            .write.format("kafka")
            .mode("append")
            .options(**spark_options(self._broker))
        )
        writer = writer.options(**_PATIENCE).options(**{k: option_text(v) for k, v in sink.options.items()})
        if sink.topic is not None:
            writer = writer.option("topic", sink.topic)
        try:
            writer.save()
        except (PySparkException, Py4JJavaError) as cause:
            known = from_spark(self._pipeline, cause)
            if known.id != "source.broker":
                raise
            raise SourceError(
                "sink.broker",
                f"the broker did not take the records of batch {token.batch_id}: {known.what}",
                where=f"{sink.target}, {self._broker.bootstrap_servers}",
                do="check the broker, and whether the topic exists, then run again: the batch is sent again",
            ) from None

    @property
    def _broker(self) -> Broker:
        return self._project.brokers[self._pipeline.sink.broker]
