"""The windowed query as Spark's declarative pipelines have it; `spark-pipelines run` reads this file.

The landing folder is in the session's setting `drawdown.benchmark.landing`.
"""

from __future__ import annotations

import runpy
from pathlib import Path

from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession

QUERY = Path(__file__).parent / "queries" / "windowed.py"


@pipelines.table
def windowed() -> DataFrame:
    spark = SparkSession.active()
    landing = spark.conf.get("drawdown.benchmark.landing")
    reader = spark.readStream.format("parquet").schema("id BIGINT, k INT, at TIMESTAMP, v DOUBLE")
    events = reader.option("maxFilesPerTrigger", 5).load(landing).withWatermark("at", "1 hour")
    table: DataFrame = runpy.run_path(str(QUERY))["transform"]({"events": events})
    return table
