"""The rival: a job as somebody writes it for spark-submit, of the same query, sources and table.

    spark-submit by_hand.py QUERY.py SOURCE FORMAT MAX_FILES NAMES CHECKPOINT TABLE [KEY=VALUE ...]

One Available-now run from SOURCE (json or parquet files of events) into a Delta table; the settings are the
session's. Prints the seconds that the query's triggers took.
"""

from __future__ import annotations

import runpy
import sys

from pyspark.sql import SparkSession

EVENTS = "id BIGINT, k INT, at TIMESTAMP, v DOUBLE"
NAMES = "k INT, name STRING"


def main(
    query: str,
    source: str,
    form: str,
    max_files: str,
    names: str,
    checkpoint: str,
    table: str,
    *settings: str,
) -> None:
    builder = SparkSession.builder.appName("by hand")
    for setting in (
        "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone=UTC",
        *settings,
    ):
        builder = builder.config(*setting.split("=", 1))
    spark = builder.getOrCreate()
    reader = spark.readStream.format(form).schema(EVENTS).option("maxFilesPerTrigger", max_files)
    events = reader.load(source).withWatermark("at", "1 hour")
    transform = runpy.run_path(query)["transform"]
    output = transform({"events": events, "names": spark.read.schema(NAMES).json(names)})
    running = (
        output.writeStream.format("delta")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(table)
    )
    running.awaitTermination()
    took = sum(each["durationMs"]["triggerExecution"] for each in running.recentProgress)
    print(f"query seconds {took / 1000:.3f}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
