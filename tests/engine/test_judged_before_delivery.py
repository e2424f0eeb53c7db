"""Sinks whose rows cannot be taken back are given none of a batch that a `fail` policy ends."""

from __future__ import annotations

import json

import pytest

from drawdown.errors import SourceError, TransformError
from tests.support.workspace import Workspace

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: events.ddl, POLICY}
transform: transform.sql
sink: {SINK}
state: {partitions: 2}
"""
FILES = {
    "events_ddl": "id INT, v STRING",
    "transform_sql": "SELECT to_json(struct(id, v)) AS value FROM events",
}
RULE = "rules: [{name: positive, check: id > 0, on_fail: FAIL}]\n"
PARQUET = "format: parquet, path: tables/out, publish: direct"
SINKS = {
    "parquet": PARQUET,
    "text": PARQUET.replace("parquet", "text"),
    "foreach_batch": "format: foreach_batch, function: places.py",
    "foreach": "format: foreach, function: rows.py",
    "memory": "format: memory",
}
PLACES = """
def write(batch, token):
    with open("{file}", "a") as out:
        out.writelines(row.value + "\\n" for row in batch.collect())
"""
ROWS = """
class Writer:
    def process(self, row):
        with open("{file}", "a") as out:
            out.write(row.value + "\\n")
"""


def _pipeline(
    workspace: Workspace, kind: str, policy: str = "malformed: fail", on_fail: str = "fail"
) -> None:
    file = workspace.root / "given"
    workspace.pipeline(
        "out",
        SPEC.replace("SINK", SINKS[kind]).replace("POLICY", policy),
        **FILES,
        quality_yaml=RULE.replace("FAIL", on_fail),
        places_py=PLACES.replace("{file}", str(file)),
        rows_py=ROWS.replace("{file}", str(file)),
    )


def _delivered(workspace: Workspace, kind: str) -> list[int]:
    """Ids of the rows that readers of the sink see."""
    assert workspace.spark is not None
    if kind in ("parquet", "text"):
        if not (workspace.storage / "tables/out/_spark_metadata").exists():
            return []
        frame = workspace.spark.read.format(kind).load(str(workspace.storage / "tables/out"))
        values = [row.value for row in frame.collect()]
    elif kind == "memory":
        known = workspace.spark.catalog.tableExists("global_temp.out")
        values = [row.value for row in workspace.spark.table("global_temp.out").collect()] if known else []
    else:
        file = workspace.root / "given"
        values = file.read_text().splitlines() if file.exists() else []
    return sorted(json.loads(value)["id"] for value in values)


_IN_FULL = ("text", "foreach", "memory")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.full if kind in _IN_FULL else ()) for kind in SINKS]
)
def test_a_batch_that_ends_the_run_reaches_nobody_and_comes_whole_when_it_is_corrected(
    workspace: Workspace, kind: str
) -> None:
    _pipeline(workspace, kind)
    file = workspace.land("landing/events/a.json", ['{"id": 1}', '{"id": -2}', '{"id": 3}'])
    with pytest.raises(TransformError) as broken:
        workspace.run("out")
    assert broken.value.id == "rule.failed"
    assert _delivered(workspace, kind) == []

    file.write_text('{"id": 1}\n{"id": "two"}\n{"id": 3}\n')
    with pytest.raises(SourceError) as malformed:
        workspace.run("out")
    assert malformed.value.id == "source.malformed"
    assert _delivered(workspace, kind) == []

    file.write_text('{"id": 1}\n{"id": 2}\n{"id": 3}\n')
    run = workspace.run("out")
    assert (run.counts.fed, run.counts.staged, run.counts.published) == (3, 3, 3)
    assert _delivered(workspace, kind) == [1, 2, 3]


def test_a_row_that_ended_a_run_is_in_the_quarantine_alone_once_the_policy_says_so(
    workspace: Workspace,
) -> None:
    _pipeline(workspace, "parquet")
    workspace.land("landing/events/a.json", ['{"id": 1}', '{"id": -2}'])
    with pytest.raises(TransformError):
        workspace.run("out")
    _pipeline(workspace, "parquet", "malformed: quarantine", "quarantine")
    run = workspace.run("out")
    assert (run.counts.fed, run.counts.quarantined) == (1, 1)
    assert _delivered(workspace, "parquet") == [1]
    assert [json.loads(row["payload"])["id"] for row in workspace.quarantined("out")] == [-2]


def test_without_a_policy_that_fails_the_batch_is_read_once(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look before the delivery costs a second read of the batch: only who asks for it pays."""
    from drawdown.engine.boundary import Boundary

    looks: list[str] = []
    count = Boundary.count

    def noted(boundary: Boundary, batch: object) -> object:
        looks.append(boundary.name)
        return count(boundary, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(Boundary, "count", noted)
    _pipeline(workspace, "parquet", "malformed: quarantine", "quarantine")
    workspace.land("landing/events/a.json", ['{"id": 1}'])
    workspace.run("out")
    assert looks == []
    _pipeline(workspace, "parquet")
    workspace.land("landing/events/b.json", ['{"id": 2}'])
    workspace.run("out")
    assert looks == ["events"]
