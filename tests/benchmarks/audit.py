"""What an audit of 14 expectations costs beside one hand-written aggregate over the same slice.

    python -m tests.benchmarks.audit [ROWS ...]

Both read the same parquet files in a session of their own, in turns.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from drawdown.quality.audit import GxAuditor
from tests.benchmarks.comparison import Comparison, in_turns
from tests.benchmarks.page import present
from tests.support.quality import pipeline_with
from tests.support.spark import start_session

SIZES = (100_000, 1_000_000, 10_000_000)
RIVAL = "one hand-written aggregate"
BOUND = 2.0

QUALITY = """
expectations:
  - {type: expect_table_row_count_to_be_between, kwargs: {min_value: 1}}
  - {type: expect_column_values_to_not_be_null, kwargs: {column: departed_at}}
  - {type: expect_column_values_to_not_be_null, kwargs: {column: origin}}
  - {type: expect_column_values_to_not_be_null, kwargs: {column: delay, mostly: 0.8}}
  - {type: expect_column_values_to_be_in_set, kwargs: {column: origin, value_set: [EWR, JFK, LGA]}}
  - {type: expect_column_values_to_be_between, kwargs: {column: delay, min_value: -60, max_value: 1000}}
  - {type: expect_column_values_to_be_between, kwargs: {column: flight, min_value: 0}}
  - {type: expect_column_values_to_match_regex, kwargs: {column: tailnum, regex: "^N[0-9]+$"}}
  - {type: expect_column_value_lengths_to_be_between, kwargs: {column: tailnum, min_value: 2, max_value: 9}}
  - {type: expect_column_mean_to_be_between, kwargs: {column: delay, min_value: 0, max_value: 100}}
  - {type: expect_column_stdev_to_be_between, kwargs: {column: delay, max_value: 100}}
  - {type: expect_column_max_to_be_between, kwargs: {column: departed_at, max_value: 2013-12-31}}
  - type: expect_column_pair_values_a_to_be_greater_than_b
    kwargs: {column_A: arrived_at, column_B: departed_at, or_equal: true}
  - {type: expect_column_unique_value_count_to_be_between, kwargs: {column: tailnum, min_value: 10}}
"""

BY_HAND = [
    "count(*)",
    "count_if(departed_at IS NULL)",
    "count_if(origin IS NULL)",
    "count_if(delay IS NULL)",
    "count_if(origin NOT IN ('EWR', 'JFK', 'LGA'))",
    "count_if(delay NOT BETWEEN -60 AND 1000)",
    "count_if(flight < 0)",
    "count_if(NOT tailnum RLIKE '^N[0-9]+$')",
    "count_if(length(tailnum) NOT BETWEEN 2 AND 9)",
    "avg(delay)",
    "stddev_samp(delay)",
    "max(departed_at)",
    "count_if(arrived_at < departed_at)",
    "count(DISTINCT tailnum)",
]


def main(*sizes: int) -> int:
    spark = start_session()
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = [each for rows in sizes for each in _compare(spark, str(Path(folder) / str(rows)), rows)]
    finally:
        spark.stop()
    return present("audit", found)


def _compare(spark: SparkSession, path: str, rows: int) -> list[Comparison]:
    flights(spark, rows).write.parquet(path)
    pipeline = pipeline_with(QUALITY)
    slice_ = spark.newSession().read.parquet(path)

    def audit() -> None:
        said = GxAuditor()(slice_, pipeline, rows)
        assert said.outcome == "pass", said.text

    def aggregate() -> None:
        slice_.selectExpr(*BY_HAND).collect()

    what = f"14 expectations, {rows:,} rows"
    jobs = [[float(_jobs(spark, work))] for work in (audit, aggregate)]
    pairs = in_turns(lambda _: _seconds(audit), lambda _: _seconds(aggregate))
    ours, rival = ([pair[way] for pair in pairs] for way in (0, 1))
    return [
        Comparison(what, RIVAL, "s", ours, rival, BOUND),
        Comparison(f"{what}: Spark jobs", RIVAL, "jobs", *jobs),
    ]


def flights(spark: SparkSession, rows: int) -> DataFrame:
    """Rows like flights: flight, origin, tailnum, delay (a tenth NULL), departed_at, arrived_at."""
    return spark.range(0, rows, 1, 2).selectExpr(
        "id AS flight",
        "element_at(array('EWR', 'JFK', 'LGA'), int(id % 3 + 1)) AS origin",
        "concat('N', id % 4000) AS tailnum",
        "CASE WHEN id % 10 > 0 THEN double(id % 90) END AS delay",
        "timestamp_seconds(1356998400 + id % 31000000) AS departed_at",
        "timestamp_seconds(1356998400 + id % 31000000 + 7200) AS arrived_at",
    )


def _jobs(spark: SparkSession, work: Callable[[], None]) -> int:
    """Spark jobs of one call; it also warms up what a first call compiles."""
    spark.sparkContext.setJobGroup(work.__name__, work.__name__)
    try:
        work()
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(work.__name__))
    finally:
        spark.sparkContext._jsc.clearJobGroup()


def _seconds(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main(*(map(int, sys.argv[1:]) if sys.argv[1:] else SIZES)))
