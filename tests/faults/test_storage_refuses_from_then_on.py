"""A key that ends in the middle of a drain: from one request on, a bucket refuses every other one, too.

So the run cannot even read how far it has come. Its record says why it failed all the same, nothing stays
locked, and the next run, with a new key, comes to what a run that never failed comes to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.bucket_sandbox import BucketSandbox, only_here
from tests.support.kill_matrix import KINDS, NAME, Ended, ended, land
from tests.support.s3_proxy import ACCESS_DENIED, EXPIRED_TOKEN, Refuse, Rule, S3Proxy
from tests.support.s3_requests import S3Request
from tests.support.s3_servers import Moto

KIND = KINDS["delta append audited in a bucket"]
pytestmark = pytest.mark.capability("OBJ-13")


@dataclass
class FromThenOn(Rule):
    """Begins with the first request of its kind and key; every request after it is hurt, whatever it asks."""

    def strikes(self, request: S3Request) -> bool:
        begun = self.struck > 0 or super().strikes(request)
        self.struck += begun
        return begun


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> Iterator[None]:
    with only_here(spark):
        yield


@pytest.fixture(scope="module")
def never_failed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, s3: Moto) -> Ended:
    with only_here(spark):
        sandbox = _project(tmp_path_factory.mktemp("control") / "project", spark, s3)
        sandbox.run(NAME)
        return ended(KIND, sandbox)


def _project(root: Path, spark: SparkSession, server: Moto | S3Proxy) -> BucketSandbox:
    sandbox = KIND.project(root, spark, server)
    assert isinstance(sandbox, BucketSandbox)
    land(sandbox, 0)
    return sandbox


@pytest.mark.parametrize(
    ("key", "refusal"),
    [
        ("*/offsets/1", EXPIRED_TOKEN),
        pytest.param("*/state/*", EXPIRED_TOKEN, marks=pytest.mark.full),
        pytest.param("*.parquet", EXPIRED_TOKEN, marks=pytest.mark.full),
        pytest.param("*/commits/1", ACCESS_DENIED, marks=pytest.mark.full),
        pytest.param("*/quarantine/*_delta_log/*1.json", ACCESS_DENIED, marks=pytest.mark.full),
        pytest.param("*/tables/*_delta_log/*1.json", EXPIRED_TOKEN, marks=pytest.mark.full),
    ],
)
def test_a_run_whose_key_ends_is_recorded_as_failed_and_the_next_one_goes_on(
    tmp_path: Path,
    spark: SparkSession,
    s3: Moto,
    s3_proxy: S3Proxy,
    never_failed: Ended,
    key: str,
    refusal: Refuse,
) -> None:
    sandbox = _project(tmp_path / "project", spark, s3_proxy)
    rule = s3_proxy.add(FromThenOn(refusal, kinds=("PUT",), key=key))
    [report] = sandbox.drain(NAME)
    assert rule.struck
    assert report.error is not None
    assert (report.error.id, report.error.exit_code) == ("storage.denied", 5), report.error
    assert "Exception" not in str(report.error), "no Java"
    with sandbox.metastore() as metastore:
        [run] = metastore.runs(NAME)
        assert (run.state, (run.error or {}).get("id")) == ("failed", "storage.denied")
        assert metastore.holder_of(NAME) is None
    s3_proxy.clear()
    sandbox.reach_by(s3)
    sandbox.run(NAME)
    assert ended(KIND, sandbox) == never_failed
