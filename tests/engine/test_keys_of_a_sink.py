"""The keys of an update table: others are refused, and what waits keeps those it was staged under."""

from __future__ import annotations

import pytest

from drawdown.errors import AuditFailed
from drawdown.publishing.held import Decision, decide
from drawdown.spec import load_pipeline
from tests.support.changes import change_refused, land, write
from tests.support.workspace import Workspace

TRANSFORM = "SELECT k, j, max(v) AS n FROM events GROUP BY k, j"
SINK = "format: delta, path: tables/out, schema: out.ddl, mode: update, keys: [{}], publish: audited"
OUT = "k STRING, j STRING, n BIGINT"
QUALITY = """
expectations:
  - {type: expect_column_max_to_be_between, kwargs: {column: n, max_value: 10}}
"""


def test_other_keys_are_refused_and_a_held_slice_is_released_under_its_own(workspace: Workspace) -> None:
    write(workspace, TRANSFORM, sink=SINK.format("k, j"), out_ddl=OUT, quality_yaml=QUALITY)
    land(workspace, "1", ("a", "x", 1), ("a", "y", 2))
    workspace.run("changed")
    land(workspace, "2", ("a", "y", 99))
    with pytest.raises(AuditFailed):
        workspace.run("changed")
    assert workspace.delta("tables/out") == [("a", "x", 1), ("a", "y", 2)]

    write(workspace, TRANSFORM, sink=SINK.format("k"))
    land(workspace, "3", ("b", "x", 3))
    assert "sink.keys was k, j and is now k" in change_refused(workspace)
    pipeline = load_pipeline(workspace.project, "changed")
    decision = Decision("release", "r2", "this process", "ada", "looked at")
    with workspace.metastore() as metastore:
        decide(metastore, workspace.project, pipeline, decision)
    assert workspace.delta("tables/out") == [("a", "x", 1), ("a", "y", 99)], "not one row for each k"
