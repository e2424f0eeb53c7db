"""Kafka: each batch is sent by Spark's own Kafka writer, one record a row. At least once."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from drawdown.engine.broker import require_broker
from drawdown.engine.failures import from_spark
from drawdown.engine.session import option_text
from drawdown.engine.sinks.delivering import DeliveringSink
from drawdown.engine.sinks.token import BatchToken
from drawdown.errors import SourceError, TransformError
from drawdown.metastore.records import Checkpoint
from drawdown.spec import Broker
from drawdown.spec.broker_options import spark_options

# The columns of Spark's Kafka writer and their types (KafkaWriter.validateQuery, 4.2).
_COLUMNS = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "topic": ("string",),
    "partition": ("int",),
}
# Half of the producer's own patience, which is two minutes a batch.
_PATIENCE = {"kafka.max.block.ms": "30000", "kafka.delivery.timeout.ms": "60000"}


class KafkaSink(DeliveringSink):
    """One topic (``topic:``), or the topic that each row names."""

    def check(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        self._refuse_columns(schema)
        require_broker(self._broker, "sink.broker", f"the sink of {self._pipeline.name}")
        return super().check(schema, checkpoint)

    def deliver(self, frame: DataFrame, token: BatchToken) -> None:
        sink = self._pipeline.sink
        writer = frame.write.format("kafka").mode("append").options(**spark_options(self._broker))
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
                do="look at the broker, and whether the topic is there, then run again: the batch is resent",
            ) from None

    @property
    def _broker(self) -> Broker:
        return self._project.brokers[self._pipeline.sink.broker]

    def _refuse_columns(self, schema: StructType) -> None:
        found = {field.name: field.dataType.simpleString() for field in schema.fields}
        wrong = [f"`{n}` is no column of a record" for n in found if n not in _COLUMNS]
        wrong += [
            f"`{name}` is {found[name]} instead of {' or '.join(types)}"
            for name, types in _COLUMNS.items()
            if name in found and found[name] not in types
        ]
        if "value" not in found:
            wrong.append("there is no `value`")
        if "topic" not in found and self._pipeline.sink.topic is None:
            wrong.append("there is neither a column `topic` nor `topic:` in the sink")
        if "topic" in found and self._pipeline.sink.topic is not None:
            wrong.append(
                f"`topic:` in the sink would send all to {self._pipeline.sink.topic}, not to `topic`"
            )
        if wrong:
            raise TransformError(
                "sink.kafka-columns",
                f"the output of {self._pipeline.name} cannot be sent to Kafka: {'; '.join(wrong)}",
                where=str(self._pipeline.folder / self._pipeline.transform),
                do="select value (and key, headers, topic, partition), for example"
                " `to_json(struct(*)) AS value`",
            )
