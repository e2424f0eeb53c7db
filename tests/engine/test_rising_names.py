"""A source with `order: name` in a bucket: neither Drawdown nor Spark lists what was read long ago."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from drawdown.drain.planning import plan_pipeline
from drawdown.plan.preflight import Preflight, preflight
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.support.landing_bucket import LandingBucket
from tests.support.s3_servers import Moto, Versitygw
from tests.support.waiting import until

SPEC = """
sources:
  events: {{format: json, path: landing/events, schema: "{columns}"{more}}}
transform: transform.sql
sink: {{format: delta, path: tables/out, schema: "{columns}"}}
state: {{partitions: 2}}
"""
RISING = ", order: name, names_late: 1 second"
MILLION = 1_000_000
DAYS = 500
FEW = 60
"""A run with a handful of objects makes fewer requests, and one that lists a million many more."""


def write(bucket: LandingBucket, more: str, columns: str = "id BIGINT") -> None:
    bucket.pipeline("many", SPEC.format(columns=columns, more=more), transform_sql="SELECT * FROM events")


@contextmanager
def workspace(bucket: LandingBucket) -> Iterator[Workspace]:
    with bucket.metastore() as metastore:
        yield Workspace(bucket.project, metastore)


def look(bucket: LandingBucket) -> Preflight:
    with workspace(bucket) as here:
        return preflight(here, load_pipeline(bucket.project, "many"))


def table(bucket: LandingBucket) -> list[Row]:
    assert bucket.spark is not None
    return bucket.spark.read.format("delta").load(f"s3a://{bucket.bucket}/tables/out").collect()


def ids(bucket: LandingBucket) -> list[int]:
    return sorted(row.id for row in table(bucket))


def put_later(bucket: LandingBucket, key: str, number: int) -> None:
    """Land an object whose time, in whole seconds, is more than a second after that of the one before."""
    time.sleep(2.1)
    bucket.put(f"landing/events/{key}", [{"id": number}])


@pytest.fixture
def bucket(tmp_path: Path, spark: SparkSession, s3: Moto) -> LandingBucket:
    return LandingBucket(tmp_path / "project", spark, s3)


@pytest.mark.capability("OBJ-10", "OBJ-17")
def test_a_name_behind_those_that_were_read_is_not_read_until_all_are_listed(bucket: LandingBucket) -> None:
    write(bucket, RISING, "id BIGINT, day INT")
    bucket.put("landing/events/day=1/a.json", [{"id": 0}])
    put_later(bucket, "day=2/a.json", 1)
    put_later(bucket, "day=2/b.json", 2)
    bucket.run("many")
    assert not look(bucket).work

    put_later(bucket, "day=2/c.json", 3)
    bucket.put("landing/events/day=3/a.json", [{"id": 4}])
    bucket.put("landing/events/day=1/late.json", [{"id": 5}])
    assert look(bucket).backlog["events"]["files"] == 2
    bucket.run("many")
    assert not look(bucket).work

    write(bucket, "", "id BIGINT, day INT")
    assert look(bucket).backlog["events"]["files"] == 1
    bucket.run("many")
    rows = sorted((row.id, row.day) for row in table(bucket))
    assert rows == [(0, 1), (1, 2), (2, 2), (3, 2), (4, 3), (5, 1)]


@pytest.mark.full
def test_a_static_read_of_the_same_folder_is_whole(bucket: LandingBucket) -> None:
    """Only listings of the file source itself start at a name."""
    bucket.pipeline(
        "many",
        """
        sources:
          events: {format: json, path: landing/events, schema: "id BIGINT", order: name, names_late: 1 second}
          all: {format: json, path: landing/events, schema: "id BIGINT", static: true}
        transform: transform.sql
        sink: {format: delta, path: tables/out, schema: "id BIGINT"}
        state: {partitions: 2}
        """,
        transform_sql="SELECT a.id FROM events e CROSS JOIN all a",
    )
    bucket.put("landing/events/a.json", [{"id": 1}])
    put_later(bucket, "b.json", 2)
    put_later(bucket, "c.json", 3)
    bucket.run("many")
    bucket.put("landing/events/d.json", [{"id": 4}])
    bucket.run("many")
    assert ids(bucket) == sorted([1, 2, 3] * 3 + [1, 2, 3, 4])


@pytest.mark.full
@pytest.mark.capability("OBJ-17")
def test_of_a_million_objects_a_few_requests_find_the_new_one(
    tmp_path: Path, spark: SparkSession, versitygw: Versitygw
) -> None:
    bucket = LandingBucket(tmp_path / "project", spark, versitygw)
    write(bucket, ", order: name", "id BIGINT, day INT")
    for last in ("700/x", "700/y"):
        bucket.put(f"landing/events/day={last}.json", [{"id": 0}])
        bucket.run("many")
    start = int(time.time()) - 2 * MILLION
    keys = [
        f"landing/events/day={100 + day}/{number:04d}.json"
        for day in range(DAYS)
        for number in range(MILLION // DAYS)
    ]
    times = [start + number // (MILLION // DAYS) for number in range(MILLION)]
    bucket.place(keys, times, b'{"id": 1}\n')
    bucket.pretend_read("many", keys, times)

    with requests_below(versitygw, FEW):
        assert not look(bucket).work
    bucket.put("landing/events/day=700/z.json", [{"id": 2}])
    with requests_below(versitygw, FEW):
        assert look(bucket).backlog["events"]["files"] == 1
    with requests_below(versitygw, FEW), workspace(bucket) as here:
        assert not plan_pipeline(spark, here, load_pipeline(bucket.project, "many")).errors
    with requests_below(versitygw, FEW):
        bucket.run("many")
    assert ids(bucket) == [0, 0, 2]


@contextmanager
def requests_below(server: Versitygw, most: int) -> Iterator[None]:
    server.mark()
    began = time.monotonic()
    yield
    until(lambda: server.requests("landing/*").total() > 0, 10)
    counted = server.requests("landing/*")
    print(f"{time.monotonic() - began:.1f} s", dict(counted), "of", dict(server.requests()))
    assert counted.total() < most, counted
