"""REC: a run after a failure, and one after a clean stop, goes on from the committed offsets."""

from __future__ import annotations

import pytest

from drawdown.checkpoint import CheckpointFiles
from drawdown.errors import TransformError
from drawdown.storage import Storage
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.py
sink: {format: delta, path: tables/out, schema: out.ddl, mode: update, keys: [k]}
state: {partitions: 2}
"""
FILES = {"event_ddl": "k STRING, v BIGINT", "out_ddl": "k STRING, n BIGINT"}
TRANSFORM = """
from pyspark.sql.functions import udf

@udf("BIGINT")
def checked(v):
    if v in {refused}:
        raise ValueError(f"cannot take {{v}}")
    return v

def transform(sources):
    rows = sources["events"].select("k", checked("v").alias("v"))
    return rows.groupBy("k").sum("v").withColumnRenamed("sum(v)", "n")
"""


def _committed(sandbox: Sandbox) -> int | None:
    storage = Storage(sandbox.project.storage_root)
    return CheckpointFiles(storage, "_drawdown/totals/checkpoint-1").last_commit_batch()


def _land(sandbox: Sandbox, number: int, k: str, v: int) -> None:
    file = f"landing/events/{number}.json"
    sandbox.land_json(file, [{"k": k, "v": v}], mtime=1_700_000_000 + number)


@pytest.mark.full
@pytest.mark.conformance("REC-16")
def test_a_run_after_a_failure_and_after_a_stop_goes_on_from_the_committed_offsets(
    sandbox: Sandbox,
) -> None:
    sandbox.pipeline("totals", SPEC, **FILES, transform_py=TRANSFORM.format(refused="(4,)"))
    for number, v in enumerate((1, 2, 4, 8)):
        _land(sandbox, number, "a", v)
    with pytest.raises(TransformError) as failed:
        sandbox.run("totals")
    assert "cannot take 4" in failed.value.what
    assert _committed(sandbox) == 1, "two batches before the one that failed"
    assert sandbox.delta("tables/out") == [], "not judged yet"

    # Fixed, and bounded: a clean stop before the last batch.
    bounded = SPEC + "drain: {max_batches: 1}\n"
    sandbox.pipeline("totals", bounded, transform_py=TRANSFORM.format(refused="()"))
    stopped = sandbox.run("totals")
    assert (stopped.batches, stopped.counts.read) == (1, 1), "the failed batch again, and no other"
    assert sandbox.delta("tables/out") == [("a", 7)]

    sandbox.pipeline("totals", SPEC)
    _land(sandbox, 4, "b", 16)
    last = sandbox.run("totals")
    assert (last.batches, last.counts.read) == (2, 2)
    assert sandbox.delta("tables/out") == [("a", 15), ("b", 16)]
