"""A project in a bucket of a real S3 server: in memory, and for `make test-all` with files on disk, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.bucket_sandbox import BucketSandbox, HourlyInBucket, only_here
from tests.support.s3_servers import S3Server


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession, any_s3: S3Server) -> Iterator[BucketSandbox]:
    """A project of its own, whose storage root is a prefix of an empty bucket."""
    with only_here(spark):
        sandbox = BucketSandbox(tmp_path / "project", spark, any_s3)
        yield sandbox
        assert sandbox.on_this_machine() == set(), "the bucket was taken for a folder"


@pytest.fixture
def hourly(tmp_path: Path, spark: SparkSession, any_s3: S3Server) -> Iterator[HourlyInBucket]:
    """The same, with the pipeline that rebuilds are tested on."""
    with only_here(spark):
        sandbox = HourlyInBucket(tmp_path / "project", spark, any_s3)
        yield sandbox
        assert sandbox.on_this_machine() == set(), "the bucket was taken for a folder"
