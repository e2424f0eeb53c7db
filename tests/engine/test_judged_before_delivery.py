"""Sinks whose rows cannot be taken back are given none of a batch that a `fail` policy ends."""

from __future__ import annotations

import json

import pytest

from drawdown.errors import SourceError, TransformError
from tests.support.sandbox import Sandbox

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


def _pipeline(sandbox: Sandbox, kind: str, policy: str = "malformed: fail", on_fail: str = "fail") -> None:
    file = sandbox.root / "given"
    sandbox.pipeline(
        "out",
        SPEC.replace("SINK", SINKS[kind]).replace("POLICY", policy),
        **FILES,
        quality_yaml=RULE.replace("FAIL", on_fail),
        places_py=PLACES.replace("{file}", str(file)),
        rows_py=ROWS.replace("{file}", str(file)),
    )


def _delivered(sandbox: Sandbox, kind: str) -> list[int]:
    """Ids of the rows that readers of the sink see."""
    assert sandbox.spark is not None
    if kind in ("parquet", "text"):
        if not (sandbox.storage / "tables/out/_spark_metadata").exists():
            return []
        frame = sandbox.spark.read.format(kind).load(str(sandbox.storage / "tables/out"))
        values = [row.value for row in frame.collect()]
    elif kind == "memory":
        known = sandbox.spark.catalog.tableExists("global_temp.out")
        values = [row.value for row in sandbox.spark.table("global_temp.out").collect()] if known else []
    else:
        file = sandbox.root / "given"
        values = file.read_text().splitlines() if file.exists() else []
    return sorted(json.loads(value)["id"] for value in values)


_IN_FULL = ("text", "foreach", "memory")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.full if kind in _IN_FULL else ()) for kind in SINKS]
)
def test_a_batch_that_ends_the_run_reaches_nobody_and_comes_whole_when_it_is_corrected(
    sandbox: Sandbox, kind: str
) -> None:
    _pipeline(sandbox, kind)
    file = sandbox.land("landing/events/a.json", ['{"id": 1}', '{"id": -2}', '{"id": 3}'])
    with pytest.raises(TransformError) as broken:
        sandbox.run("out")
    assert broken.value.id == "rule.failed"
    assert _delivered(sandbox, kind) == []

    file.write_text('{"id": 1}\n{"id": "two"}\n{"id": 3}\n')
    with pytest.raises(SourceError) as malformed:
        sandbox.run("out")
    assert malformed.value.id == "source.malformed"
    assert _delivered(sandbox, kind) == []

    file.write_text('{"id": 1}\n{"id": 2}\n{"id": 3}\n')
    run = sandbox.run("out")
    assert (run.counts.fed, run.counts.staged, run.counts.published) == (3, 3, 3)
    assert _delivered(sandbox, kind) == [1, 2, 3]


def test_a_row_that_ended_a_run_is_in_the_quarantine_alone_once_the_policy_says_so(
    sandbox: Sandbox,
) -> None:
    _pipeline(sandbox, "parquet")
    sandbox.land("landing/events/a.json", ['{"id": 1}', '{"id": -2}'])
    with pytest.raises(TransformError):
        sandbox.run("out")
    _pipeline(sandbox, "parquet", "malformed: quarantine", "quarantine")
    run = sandbox.run("out")
    assert (run.counts.fed, run.counts.quarantined) == (1, 1)
    assert _delivered(sandbox, "parquet") == [1]
    assert [json.loads(row["payload"])["id"] for row in sandbox.quarantined("out")] == [-2]


def test_without_a_policy_that_fails_the_batch_is_read_once(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look before the delivery costs a second read of the batch: only who asks for it pays."""
    from drawdown.rows.row_fates import Boundary

    looks: list[str] = []
    count = Boundary.count

    def noted(boundary: Boundary, batch: object) -> object:
        looks.append(boundary.name)
        return count(boundary, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(Boundary, "count", noted)
    _pipeline(sandbox, "parquet", "malformed: quarantine", "quarantine")
    sandbox.land("landing/events/a.json", ['{"id": 1}'])
    sandbox.run("out")
    assert looks == []
    _pipeline(sandbox, "parquet")
    sandbox.land("landing/events/b.json", ['{"id": 2}'])
    sandbox.run("out")
    assert looks == ["events"]
