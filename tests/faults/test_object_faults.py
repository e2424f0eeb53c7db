"""A bucket that throttles, stalls, breaks connections, goes away or says no, in the middle of a drain.

The run goes on, or ends with one clear error; the next one gives the rows of a run that never failed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.errors import DrawdownError
from tests.support.bucket_sandbox import BucketSandbox, only_here
from tests.support.kill_matrix import BATCHES, FILES, KINDS, NAME, SPEC, Ended, ended, land
from tests.support.s3_proxy import (
    ACCESS_DENIED,
    EXPIRED_TOKEN,
    INTERNAL_ERROR,
    SLOW_DOWN,
    Delay,
    Effect,
    LoseAnswer,
    Reset,
    Rule,
    S3Proxy,
)
from tests.support.s3_requests import Kind
from tests.support.s3_servers import Moto

KIND = KINDS["delta append audited in a bucket"]
pytestmark = pytest.mark.capability("OBJ-13")


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> Iterator[None]:
    with only_here(spark):
        yield


@pytest.fixture(scope="module")
def never_failed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, s3: Moto) -> Ended:
    """What a project has come to that no fault has met."""
    with only_here(spark):
        sandbox = made(tmp_path_factory.mktemp("control") / "project", spark, s3)
        sandbox.run(NAME)
        return ended(KIND, sandbox)


@pytest.fixture
def sandbox(tmp_path: Path, spark: SparkSession, s3_proxy: S3Proxy) -> BucketSandbox:
    return made(tmp_path / "project", spark, s3_proxy)


def made(root: Path, spark: SparkSession, server: Moto | S3Proxy) -> BucketSandbox:
    sandbox = BucketSandbox(root, spark, server)
    sandbox.pipeline(NAME, SPEC.replace("SINK", f"schema: out.ddl, {KIND.spec}"), **FILES)
    land(sandbox, 0)
    return sandbox


def failure(sandbox: BucketSandbox) -> DrawdownError:
    [report] = sandbox.drain(NAME)
    assert report.error is not None
    return report.error


TROUBLES = {
    "throttled, and reset in puts": [
        Rule(SLOW_DOWN, skip=20, times=8),
        Rule(Reset(10), kinds=("PUT",), skip=5, times=3),
    ],
    "internal errors": [Rule(INTERNAL_ERROR, skip=20, times=3)],
    "lost answers of the checkpoint": [
        Rule(LoseAnswer(), kinds=("PUT",), key="*/offsets/*", times=1),
        Rule(LoseAnswer(), kinds=("PUT",), key="*/commits/*", times=1),
    ],
    "slower than a time-out": [Rule(Delay(40), kinds=("PUT",), key="*/offsets/1", times=1)],
}


@pytest.mark.sampled
@pytest.mark.parametrize("rules", list(TROUBLES.values()), ids=list(TROUBLES))
@pytest.mark.capability("HOST-06")
def test_a_run_outlasts_a_storage_that_is_in_trouble(
    sandbox: BucketSandbox, s3_proxy: S3Proxy, never_failed: Ended, rules: list[Rule]
) -> None:
    for rule in rules:
        s3_proxy.add(rule)
    sandbox.run(NAME)
    s3_proxy.clear()
    assert all(rule.struck for rule in rules), "the fault has met the run"
    assert ended(KIND, sandbox) == never_failed


DENIED, UNREACHABLE = "storage.denied", "storage.unreachable"
REFUSALS = {
    "table is read-only": (ACCESS_DENIED, "PUT", "*/tables/*.parquet", DENIED, "Access Denied"),
    "log is read-only": (ACCESS_DENIED, "PUT", "*/tables/*_delta_log/*1.json", DENIED, "Access Denied"),
    "state is read-only": (ACCESS_DENIED, "PUT", "*/state/*", DENIED, "Access Denied"),
    "landing is secret": (ACCESS_DENIED, "GET", "*/landing/*.csv", DENIED, "Access Denied"),
    "key ends at the checkpoint": (EXPIRED_TOKEN, "PUT", "*/offsets/1", DENIED, "expired"),
    "throttled for good": (SLOW_DOWN, "PUT", "*/offsets/1", UNREACHABLE, "reduce your request rate"),
    # It may have arrived, so delta-rs does not put it twice: the next run finds out.
    "log slower than a time-out": (
        Delay(40),
        "PUT",
        "*/tables/*_delta_log/*1.json",
        UNREACHABLE,
        "timed out",
    ),
    "reset for good": (Reset(10), "PUT", "*/tables/*.parquet", UNREACHABLE, ""),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("effect", "kind", "key", "id", "said"), list(REFUSALS.values()), ids=list(REFUSALS))
def test_a_run_that_cannot_go_on_says_why_and_the_next_one_does(
    sandbox: BucketSandbox,
    s3: Moto,
    s3_proxy: S3Proxy,
    never_failed: Ended,
    effect: Effect,
    kind: Kind,
    key: str,
    id: str,
    said: str,
) -> None:
    rule = s3_proxy.add(Rule(effect, kinds=(kind,), key=key))
    error = failure(sandbox)
    assert rule.struck
    assert (error.id, error.exit_code) == (id, 5), error
    assert said in error.what
    assert "Exception" not in str(error), "no Java"
    assert sandbox.server.secret_key not in str(error)
    s3_proxy.clear()
    sandbox.reach_by(s3)
    sandbox.run(NAME)
    assert ended(KIND, sandbox).rows == never_failed.rows
    assert ended(KIND, sandbox).rejected == never_failed.rejected


@pytest.mark.full
@pytest.mark.parametrize("seconds", [10, 30])
def test_a_storage_that_was_away_for_a_while(
    sandbox: BucketSandbox, s3: Moto, s3_proxy: S3Proxy, never_failed: Ended, seconds: int
) -> None:
    """Short, the run goes on; long, it may end with one error, and the next one goes on."""
    away = s3_proxy.add(Rule(Delay(0), kinds=("PUT",), key="*/offsets/1", times=1))
    strikes = away.strikes

    def strike(request: object) -> bool:
        if struck := strikes(request):  # type: ignore[arg-type]
            # In a thread: the proxy holds its lock while it asks its rules.
            threading.Thread(target=s3_proxy.away, args=(seconds,)).start()
        return struck

    away.strikes = strike  # type: ignore[method-assign]
    [report] = sandbox.drain(NAME)
    s3_proxy.clear()
    sandbox.reach_by(s3)
    if report.error is not None:
        assert (seconds, report.error.id, report.error.exit_code) == (30, "storage.unreachable", 5)
        sandbox.run(NAME)
    assert ended(KIND, sandbox).rows == never_failed.rows
    assert len(ended(KIND, sandbox).batches) >= BATCHES
