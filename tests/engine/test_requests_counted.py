"""What runs send to object storage is counted: what was counted is what the server got."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.cost.bill import bill_of
from drawdown.spark.bucket_requests import sent_by_spark
from drawdown.spec.clusters.price import Price
from drawdown.storage.requests import sent
from tests.support.landing_bucket import LandingBucket
from tests.support.s3_servers import Moto
from tests.support.waiting import until

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: "id BIGINT"}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: "id BIGINT"}
state: {partitions: 2}
"""


@pytest.fixture
def bucket(tmp_path: Path, spark: SparkSession, s3: Moto) -> LandingBucket:
    return LandingBucket(tmp_path / "project", spark, s3)


def since(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    return {kind: times - before[kind] for kind, times in now.items() if times > before[kind]}


def got(server: Moto) -> dict[str, int]:
    """What the server says, with an upload's POST as a put."""
    found = Counter({kind.lower(): times for kind, times in server.requests().items()})
    found["put"] += found.pop("post", 0)
    return dict(+found)


def test_of_drawdowns_own_requests_each_is_counted(bucket: LandingBucket) -> None:
    storage, before = bucket.objects, sent()
    bucket.server.mark()
    storage.create("a/1", b"first")
    storage.create("a/1", b"again")
    storage.write_atomic("a/2", b"second")
    storage.copy("a/2", "a/3")
    for number in range(1_200):
        storage.write_atomic(f"many/{number:04}", b"x")
    assert storage.read_bytes("a/1") == b"first"
    with storage.open("a/2") as file:
        assert file.read() == b"second"
    assert storage.info("a") is None
    assert storage.info("a/3") is not None
    assert len(list(storage.walk("many"))) == 1_200
    assert len(list(storage.walk("many", depth=1))) == 1_200
    assert not list(storage.walk("none"))
    assert [each.name for each in storage.walk("many", after="many/1197")] == ["1198", "1199"]
    storage.delete("many")
    counted = since(before, sent())
    until(lambda: counted == got(bucket.server), 5)


def test_of_sparks_requests_each_is_counted(bucket: LandingBucket, spark: SparkSession) -> None:
    bucket.put("landing/events/1.json", [{"id": 1}])
    before = sent_by_spark(spark)
    bucket.server.mark()
    rows = spark.read.json(f"s3a://{bucket.bucket}/landing/events")
    rows.write.parquet(f"s3a://{bucket.bucket}/copies")
    counted = since(before, sent_by_spark(spark))
    assert all(counted[kind] for kind in ("get", "put", "list"))
    until(lambda: counted == got(bucket.server), 5)


def test_a_run_records_its_requests_and_what_they_cost(bucket: LandingBucket) -> None:
    bucket.pipeline("events", SPEC, transform_sql="SELECT id FROM events")
    bucket.put("landing/events/1.json", [{"id": 1}])
    bucket.server.mark()
    bucket.run("events")
    with bucket.metastore() as metastore:
        [run] = metastore.runs("events", limit=1)
    assert run.usage is not None
    counted, real = run.usage["requests"], got(bucket.server)
    print(counted, real)
    assert all(0 < counted[kind] <= real[kind] for kind in ("list", "get", "head", "put"))

    asked = {"list": "0.005", "put": "0.005", "get": "0.0004"}
    price = Price.model_validate({"currency": "USD", "core_hour": 1, "requests": asked})
    paid = bill_of({**run.usage, "us": 0, "price": price.recorded}).money["USD"]
    written, read = counted["list"] + counted["put"], counted["get"] + counted["head"]
    assert paid == Fraction(written * 5, 1_000_000) + Fraction(read * 4, 10_000_000)
