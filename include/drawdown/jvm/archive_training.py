"""The training run of the class archive: a tiny job that does what drains do (run by spark-submit).

It works in the current folder, which the caller removes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KAFKA_CLASSES = (
    "org.apache.kafka.clients.admin.KafkaAdminClient",
    "org.apache.kafka.clients.consumer.KafkaConsumer",
    "org.apache.kafka.clients.producer.KafkaProducer",
)


def main() -> None:
    """Write and read Delta, run a stateful streaming query over files, and load Kafka's classes."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("class-archive-training").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    here = Path.cwd()
    (here / "in").mkdir()
    for number in range(2):
        (here / "in" / f"{number}.csv").write_text("at,name\n2013-01-01 00:00:00,a\n2013-01-01 01:00:00,b\n")
    rows = spark.read.schema("at timestamp, name string").csv(str(here / "in"), header=True)
    for _ in range(2):
        rows.write.format("delta").mode("append").save(str(here / "delta"))
    spark.read.format("delta").load(str(here / "delta")).groupBy("name").count().collect()
    _stream(spark, here)
    _touch_kafka(spark)
    spark.stop()


def _stream(spark: SparkSession, here: Path) -> None:
    def write(batch: Any, batch_id: int) -> None:
        batch.write.format("delta").mode("append").save(str(here / "counts"))

    source = (
        spark.readStream.schema("at timestamp, name string")
        .option("maxFilesPerTrigger", 1)
        .csv(str(here / "in"), header=True)
    )
    counts = source.withWatermark("at", "1 hour").groupBy("at", "name").count()
    query = (
        counts.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(here / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _touch_kafka(spark: SparkSession) -> None:
    """Load a Kafka source, which contacts no broker, and its clients by name."""
    options = {"kafka.bootstrap.servers": "127.0.0.1:9", "subscribe": "nothing"}
    spark.readStream.format("kafka").options(**options).load().selectExpr("CAST(value AS STRING)")
    jvm: Any = spark._jvm
    for name in KAFKA_CLASSES:
        jvm.org.apache.spark.util.Utils.classForName(name, True, False)


if __name__ == "__main__":
    main()
