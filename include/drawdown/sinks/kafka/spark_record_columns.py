"""The columns that a row needs to become a record of a topic: those of Spark's Kafka writer."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from drawdown.errors import TransformError
from drawdown.spec import Pipeline
from drawdown.values.kafka_names import RESERVED, RESERVED_ROWS

# The columns of Spark's Kafka writer and their types (KafkaWriter.validateQuery, 4.2).
_COLUMNS = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "topic": ("string",),
    "partition": ("int",),
}


def refuse_columns(pipeline: Pipeline, schema: StructType) -> None:
    """Raise TransformError ``sink.kafka-columns`` that names every column that does not fit a record."""
    found = {field.name: field.dataType.simpleString() for field in schema.fields}
    wrong = [f"`{n}` is no column of a record" for n in found if n not in _COLUMNS]
    wrong += [
        f"`{name}` is {found[name]} instead of {' or '.join(types)}"
        for name, types in _COLUMNS.items()
        if name in found and found[name] not in types
    ]
    if "value" not in found:
        wrong.append("there is no `value`")
    if "topic" not in found and pipeline.sink.topic is None:
        wrong.append("there is neither a column `topic` nor `topic:` in the sink")
    if "topic" in found and pipeline.sink.topic is not None:
        wrong.append(f"`topic:` in the sink would send all to {pipeline.sink.topic}, not to `topic`")
    if wrong:
        raise TransformError(
            "sink.kafka-columns",
            f"the output of {pipeline.name} cannot be sent to Kafka: {'; '.join(wrong)}",
            where=str(pipeline.folder / pipeline.transform),
            do="select value (and key, headers, topic, partition), for example `to_json(struct(*)) AS value`",
        )


def refusing_reserved_topics(frame: DataFrame) -> DataFrame:
    """Return the same rows; a query that writes them fails at the first one for a reserved topic."""
    if "topic" not in frame.columns:
        return frame
    topic = F.col("topic")
    said = F.concat(F.lit(f"{RESERVED_ROWS}: rows name the reserved topic "), topic)
    return frame.withColumn("topic", F.when(topic.rlike(RESERVED), F.raise_error(said)).otherwise(topic))
