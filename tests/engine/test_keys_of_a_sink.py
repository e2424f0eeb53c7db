"""The keys of an update table: others are refused, and what waits keeps those it was staged under."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import AuditFailed
from drawdown.held.decide import Decision, decide
from drawdown.layout import staged_of
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.support.changes import change_refused, land, land_and_run, write
from tests.support.database import TestDatabase
from tests.support.sandbox import Sandbox

TRANSFORM = "SELECT k, j, max(v) AS n FROM events GROUP BY k, j"
SINK = "format: delta, path: tables/out, schema: out.ddl, mode: update, keys: [{}], publish: audited"
OUT = "k STRING, j STRING, n BIGINT"
QUALITY = """
expectations:
  - {type: expect_column_max_to_be_between, kwargs: {column: n, max_value: 10}}
"""


def test_other_keys_are_refused_and_a_held_slice_is_released_under_its_own(sandbox: Sandbox) -> None:
    write(sandbox, TRANSFORM, sink=SINK.format("k, j"), out_ddl=OUT, quality_yaml=QUALITY)
    land_and_run(sandbox, "1", ("a", "x", 1), ("a", "y", 2))
    assert _staged(sandbox) == [], "the table has them"
    land(sandbox, "2", ("a", "y", 99))
    with pytest.raises(AuditFailed):
        sandbox.run("changed")
    assert sandbox.delta("tables/out") == [("a", "x", 1), ("a", "y", 2)]
    assert _staged(sandbox)

    write(sandbox, TRANSFORM, sink=SINK.format("k"))
    land(sandbox, "3", ("b", "x", 3))
    assert "sink.keys was k, j and is now k" in change_refused(sandbox)
    pipeline = load_pipeline(sandbox.project, "changed")
    decision = Decision("release", "r2", "this process", "ada", "looked at")
    with sandbox.metastore() as metastore:
        decide(Workspace(sandbox.project, metastore), pipeline, decision)
    assert sandbox.delta("tables/out") == [("a", "x", 1), ("a", "y", 99)], "not one row for each k"
    assert _staged(sandbox) == []


def _staged(sandbox: Sandbox) -> list[Path]:
    return list((sandbox.storage / staged_of("changed")).rglob("*.parquet"))


@pytest.mark.full
def test_a_late_release_into_postgres_keeps_the_keys_it_was_staged_under(
    database: TestDatabase, postgres_sandbox: Sandbox
) -> None:
    sandbox = postgres_sandbox
    sink = SINK.replace("delta, path: tables/out", "postgres, table: public.out")
    write(sandbox, TRANSFORM, sink=sink.format("k, j"), out_ddl=OUT, quality_yaml=QUALITY)
    land_and_run(sandbox, "1", ("a", "x", 1), ("a", "y", 2))
    land(sandbox, "2", ("a", "y", 99), ("c", "z", 5))
    with pytest.raises(AuditFailed):
        sandbox.run("changed")
    land_and_run(sandbox, "3", ("b", "x", 3), ("c", "z", 6))
    assert database.table() == [("a", "x", 1), ("a", "y", 2)], "what passed waits behind what is held"

    write(sandbox, TRANSFORM, sink=sink.format("k"))
    decision = Decision("release", "r2", "this process", "ada", "looked at")
    with sandbox.metastore() as metastore:
        decide(Workspace(sandbox.project, metastore), load_pipeline(sandbox.project, "changed"), decision)
    assert database.table() == [("a", "x", 1), ("a", "y", 99), ("b", "x", 3), ("c", "z", 6)]
