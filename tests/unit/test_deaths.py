"""Which runs count as dead with Spark's JVM, and who runs alone behind the others then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drawdown.application.suspects import in_turns, untried
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run
from drawdown.plan.deaths import deaths, looks_thoroughly, reads_alone
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.capability("SAFE-07")

SPEC = """
sources:
  events: {format: text, path: landing/NAME}
transform: transform.sql
sink: {format: delta, path: tables/NAME, schema: "value STRING"}
"""
GONE = {"id": "spark.gone", "what": "Spark's JVM ended"}
FULL = {"id": "query.failed", "what": "java.lang.OutOfMemoryError: Java heap space"}
OTHER = {"id": "query.failed", "what": "division by zero"}
TORN = {"id": "source.unreadable-file", "what": "a.gz cannot be read"}


def _ran(metastore: Metastore, name: str, *ends: tuple[str, Any]) -> None:
    for number, (state, error) in enumerate(ends):
        run_id = f"{name}-{len(metastore.runs(name))}-{number}"
        metastore.start_run(Run(run_id, name))
        if state != "running":
            metastore.finish_run(run_id, state, error=error)


@pytest.mark.parametrize(
    ("ends", "count", "thorough", "alone"),
    [
        ([], 0, False, False),
        ([("succeeded", None)], 0, False, False),
        ([("failed", GONE)], 1, True, True),
        ([("failed", FULL)], 1, True, True),
        ([("failed", OTHER)], 0, False, False),
        ([("failed", TORN)], 0, True, False),
        ([("crashed", None)], 1, True, False),
        ([("crashed", None), ("running", None)], 2, True, False),
        ([("crashed", None), ("crashed", None), ("running", None)], 3, True, True),
        ([("failed", GONE), ("failed", GONE), ("crashed", None)], 3, True, True),
        ([("failed", GONE), ("succeeded", None)], 0, False, False),
        ([("succeeded", None), ("failed", GONE)], 1, True, True),
    ],
)
def test_deaths_in_a_row_are_counted(
    tmp_path: Path, ends: list[tuple[str, Any]], count: int, thorough: bool, alone: bool
) -> None:
    with Sandbox(tmp_path).metastore() as metastore:
        _ran(metastore, "a", *ends)
        assert deaths(metastore, "a") == count
        assert looks_thoroughly(metastore, "a") is thorough
        assert reads_alone(metastore, "a") is alone


def test_suspects_run_alone_behind_the_others_the_one_with_most_deaths_last(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    pipelines = [
        sandbox.pipeline(name, SPEC.replace("NAME", name), transform_sql="SELECT value FROM events")
        for name in ("a", "b", "c", "d")
    ]
    with sandbox.metastore() as metastore:
        assert [[each.name for each in turn] for turn in in_turns(metastore, pipelines)] == [list("abcd")]
        _ran(metastore, "a", ("failed", GONE), ("failed", GONE))
        _ran(metastore, "c", ("failed", GONE))
        turns = [[each.name for each in turn] for turn in in_turns(metastore, pipelines)]
        assert turns == [["b", "d"], ["c"], ["a"]]
        assert untried(metastore, ["a", "c"]) == ["c"]
        assert untried(metastore, ["a", "b"]) == []
        assert untried(metastore, ["c"]) == [], "it was alone"
        assert [[each.name for each in turn] for turn in in_turns(metastore, pipelines[:1])] == [["a"]]
