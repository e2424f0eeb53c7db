"""What a run asks of a bucket does not grow with the runs before it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.landing_bucket import LandingBucket
from tests.support.s3_requests import Kind
from tests.support.s3_servers import Moto

SPEC = """
sources:
  events:
    format: json
    path: landing/events
    schema: "at TIMESTAMP"
    order: name
    names_late: 1 second
    watermark: {column: at, delay: 10 minutes}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: "hour TIMESTAMP, n BIGINT", publish: audited}
state: {partitions: 2}
"""
HOURLY = "SELECT window.start AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour')"
RUNS = 24
# Spark's log of seen files and Delta's log begin again every ten runs, state every five.
SAWTOOTH = 10


@pytest.mark.full
@pytest.mark.capability("OBJ-10")
def test_the_24th_run_with_state_makes_as_many_requests_as_the_14th(
    tmp_path: Path, spark: SparkSession, s3: Moto
) -> None:
    """Runs over windows, each publishing one: 531 requests the 4th, 606 the 14th, 612 the 24th.

    Without checkpoints of Delta's log the 14th made 689, 16 more than the 13th, and so on.
    """
    bucket = LandingBucket(tmp_path / "project", spark, s3)
    bucket.pipeline("hours", SPEC, transform_sql=HOURLY)
    runs = [requests_of(bucket, hour) for hour in range(RUNS)]
    print([each.total() for each in runs])
    fourth, fourteenth, last = (runs[n].total() for n in (3, 3 + SAWTOOTH, 3 + 2 * SAWTOOTH))
    assert fourteenth <= fourth * 1.2
    assert last <= fourteenth * 1.05
    rows = spark.read.format("delta").load(f"s3a://{bucket.bucket}/tables/out").collect()
    assert sorted((row.hour.hour, row.n) for row in rows) == [(hour, 3) for hour in range(RUNS - 2)]


def requests_of(bucket: LandingBucket, hour: int) -> Counter[Kind]:
    """Land three events of an hour, and return what a run asks of the bucket."""
    bucket.put(f"landing/events/{hour:02}.json", [{"at": f"2026-01-01T{hour:02}:0{n}:00Z"} for n in range(3)])
    bucket.server.mark()
    bucket.run("hours")
    return bucket.server.requests()
