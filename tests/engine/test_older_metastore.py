"""A metastore that was put back from an older copy: each way out that `metastore.behind` names."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.older_copy import copy_of
from tests.support.recovering import (
    NAME,
    Result,
    checkpoint,
    fix,
    goes_on_like,
    land,
    project,
    refused,
    result,
)
from tests.support.sandbox import Sandbox


def behind(
    tmp_path: Path, spark: SparkSession, sink: str, *, snapshot: bool = False
) -> tuple[Sandbox, Result]:
    """A pipeline whose metastore is of before its second run, and what that run had come to."""
    sandbox = project(tmp_path / "project", spark, sink)
    land(sandbox, 0)
    sandbox.run(NAME)
    put_copy_back = copy_of(sandbox)
    land(sandbox, 1)
    sandbox.run(NAME)
    if snapshot:
        checkpoint(sandbox, "snapshot")
    wanted = result(sandbox)
    put_copy_back()
    return sandbox, wanted


@pytest.mark.capability("OWN-08")
@pytest.mark.parametrize("sink", ["delta", pytest.param("parquet", marks=pytest.mark.full)])
def test_checkpoint_and_sink_go_back_to_what_an_older_copy_knows(
    tmp_path: Path, spark: SparkSession, sink: str
) -> None:
    sandbox, wanted = behind(tmp_path, spark, sink)
    before = sandbox.snapshot()
    error = refused(sandbox, "metastore.behind")
    assert sandbox.snapshot() == before
    assert f"drawdown checkpoint rewind {NAME} --to " in error.do
    fix(sandbox, error.do)
    goes_on_like(sandbox, wanted)


@pytest.mark.capability("OWN-08")
@pytest.mark.full
def test_a_snapshot_that_is_newer_than_the_copy_is_put_back(tmp_path: Path, spark: SparkSession) -> None:
    sandbox, wanted = behind(tmp_path, spark, "delta", snapshot=True)
    error = refused(sandbox, "metastore.behind")
    assert f"drawdown checkpoint restore {NAME} " in error.do
    assert "--sink" not in error.do, "the snapshot is as new as the sink: nothing has to come again"
    fix(sandbox, error.do)
    nothing = sandbox.drain(NAME)[0]
    assert (nothing.run, nothing.error) == (None, None)
    assert result(sandbox) == wanted
