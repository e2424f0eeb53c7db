"""SRC: Spark's sources for tests, and data sources written in Python."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from drawdown.plan.preflight import preflight
from tests.support.refusals import refused_spec
from tests.support.workspace import Workspace

SPEC = """
{schedule}
sources:
  ticks: {{format: {format}, options: {options}{more}}}
transform: transform.sql
sink: {{format: delta, path: tables/out, schema: out.ddl}}
state: {{partitions: 2}}
"""
TICKS = {
    "out_ddl": "timestamp TIMESTAMP, value BIGINT",
    "transform_sql": "SELECT timestamp, value FROM ticks",
}
EPOCH = datetime(1970, 1, 1)


def _spec(format: str, options: str, more: str = "", schedule: str = "") -> str:
    return SPEC.format(format=format, options=options, more=more, schedule=schedule)


PER_BATCH = "{rowsPerBatch: 3, startTimestamp: 60000, advanceMillisPerBatch: 1000, numPartitions: 1}"


@pytest.mark.conformance("SRC-16")
def test_rate_micro_batch_goes_on_where_the_last_run_ended(workspace: Workspace) -> None:
    workspace.pipeline("ticking", _spec("rate-micro-batch", PER_BATCH), **TICKS)
    for _ in range(2):
        counts = workspace.run("ticking").counts
        assert (counts.read, counts.fed) == (3, 3)
    rows = [
        ((at.replace(tzinfo=None) - EPOCH) / timedelta(milliseconds=1), n)
        for at, n in workspace.delta("tables/out")
    ]
    assert rows == [(60_000, 0), (60_000, 1), (60_000, 2), (61_000, 3), (61_000, 4), (61_000, 5)]


@pytest.mark.conformance("SRC-16")
def test_rate_gives_each_number_once_over_several_runs(workspace: Workspace) -> None:
    workspace.pipeline("rated", _spec("rate", "{rowsPerSecond: 20, numPartitions: 1}"), **TICKS)
    runs = [workspace.run("rated")]
    while sum(run.counts.read for run in runs) < 20 or len(runs) < 3:
        runs.append(workspace.run("rated"))
    values = [value for _, value in workspace.delta("tables/out")]
    assert sorted(values) == list(range(sum(run.counts.fed for run in runs)))


@pytest.mark.conformance("SRC-16")
@pytest.mark.parametrize(
    ("format", "options", "why"),
    [
        ("rate", "{rowsPerSecond: 1}", "makes its rows up"),
        ("rate-micro-batch", PER_BATCH, "makes its rows up"),
        ("socket", "{host: localhost, port: 9999}", "cannot be read again"),
    ],
)
def test_a_source_for_tests_has_no_schedule_and_no_dag(
    workspace: Workspace, format: str, options: str, why: str
) -> None:
    files = (
        TICKS if format != "socket" else {"out_ddl": "value STRING", "transform_sql": "SELECT * FROM ticks"}
    )
    scheduled = _spec(format, options, schedule='schedule: "@daily"')
    error = refused_spec(workspace, "ticking", scheduled, "spec.test-only", **files)
    assert why in error.what
    assert "remove `schedule:`" in error.do

    pipeline = workspace.pipeline("ticking", _spec(format, options), **files)
    with workspace.metastore() as metastore:
        found = preflight(workspace.project, pipeline, metastore)
    assert found.reasons == [f"ticks: only Spark can tell what a {format} source has"]

    misspelt = options.replace("{", "{rowPerSecond: 1, ")
    refused_spec(workspace, "misspelt", _spec(format, misspelt), "spec.unknown-option", **files)
