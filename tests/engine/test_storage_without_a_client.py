"""A storage root that Spark has no client for is refused before anything is read or written."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.errors import MachineError
from drawdown.spark.object_storage import reach_buckets
from tests.support.sandbox import Sandbox


@pytest.mark.parametrize("address", ["abfss://lake@account.dfs.core.windows.net/root", "abfs://lake/root"])
def test_the_scheme_is_named_and_what_to_use(spark: SparkSession, tmp_path: Path, address: str) -> None:
    sandbox = Sandbox(tmp_path)
    project = sandbox.root / "include/project.yaml"
    project.write_text(project.read_text().replace("storage_root: storage", f"storage_root: {address}"))
    with pytest.raises(MachineError) as caught:
        reach_buckets(spark, sandbox.project)
    assert (caught.value.id, caught.value.where) == ("storage.no-client", address)
    assert "s3:// or gs://" in caught.value.do


def test_hdfs_and_disks_have_one(spark: SparkSession, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    reach_buckets(spark, sandbox.project)
    project = sandbox.root / "include/project.yaml"
    project.write_text(project.read_text().replace("storage_root: storage", "storage_root: hdfs://lake/root"))
    reach_buckets(spark, sandbox.project)
