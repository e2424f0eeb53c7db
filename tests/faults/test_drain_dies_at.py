"""A drain that dies at named steps, then one that goes on: rows, counts, files, quarantine.

The moments are those between two systems: files written and not noted, noted and not committed by Spark,
committed by Spark and not marked, published and not marked. Driver and JVM are killed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from drawdown.metastore.records import Counts
from tests.support.deaths import die
from tests.support.workspace import Workspace, multiset

SPEC = """
sources:
  events:
    format: csv
    path: landing/events
    schema: events.ddl
    options: {header: true, maxFilesPerTrigger: 1}
    watermark: {column: at, delay: 10 minutes}
transform: transform.sql
sink: {format: FORMAT, path: tables/hourly, schema: out.ddl, publish: PUBLISH, MODE}
state: {partitions: 2}
"""
FILES = {
    "events_ddl": "id INT, at TIMESTAMP",
    "out_ddl": "hour TIMESTAMP, n BIGINT",
    "transform_sql": """
        SELECT window.start AS hour, count(*) AS n
        FROM (SELECT window(at, '1 hour') AS window FROM events) GROUP BY window
    """,
    "quality_yaml": "rules: [{name: small, check: id < 90, on_fail: quarantine}]\n",
}
HOURS = 3

AUDITED_MOMENTS = [
    "after batch.note 2",
    "before commits.note",
    "before verdict.note",
    "before publish.note",
    "before run.close",
]


UPDATE, COMPLETE = "mode: update, keys: [hour]", "mode: complete"
UPDATE_MOMENTS = ["after batch.note 2", "after publish.commit", "before publish.note"]


def _project(root: Path, spark: SparkSession | None, sink: Sequence[str]) -> Workspace:
    workspace = Workspace(root, spark)
    spec = SPEC
    for word, value in zip(("FORMAT", "PUBLISH", "MODE"), sink, strict=True):
        spec = spec.replace(word, value)
    workspace.pipeline("hourly", spec, **FILES)
    return workspace


def _land(workspace: Workspace, wave: int) -> None:
    for hour in range(wave * HOURS, (wave + 1) * HOURS):
        at = f"2024-01-{1 + hour // 24:02}T{hour % 24:02}"
        rows = [f"{i},{at}:{i:02}:00Z" for i in range(5)] + [f"99,{at}:09:00Z", "broken"]
        workspace.land(f"landing/events/{hour}.csv", ["id,at", *rows], mtime=hour + 1)


def _rows(workspace: Workspace, spark: SparkSession, sink_format: str) -> Any:
    if sink_format == "delta":
        return multiset(workspace.delta("tables/hourly"))
    frame = spark.read.format(sink_format).load(str(workspace.storage / "tables/hourly"))
    return multiset(tuple(row) for row in frame.collect())


def _noted(workspace: Workspace, merged: bool) -> list[tuple[Any, ...]]:
    """What the metastore says of each batch; file names and runs differ from project to project.

    Files that a publish has merged, or superseded by a later snapshot, are gone.
    """
    with workspace.metastore() as metastore:
        batches = metastore.batches("hourly", 1)
        files = metastore.staged_files("hourly", 1, [b.batch_id for b in batches])
    found = []
    for batch in batches:
        own = [f for batch_id, f in files if batch_id == batch.batch_id]
        rows = {t: sum(f.rows for f in own if f.table == t) for t in ("output", "quarantine")}
        found.append((batch.batch_id, batch.counts, batch.by_source, batch.watermark, batch.status, rows))
        assert merged or all(Path(f.path).exists() for f in own), "every noted file is there"
    return found


def _staged(workspace: Workspace) -> list[str]:
    """Files of update mode that wait to be merged."""
    return [path for path in workspace.snapshot() if "/staged/" in path and path.endswith(".parquet")]


def _in_runs(workspace: Workspace) -> Counts:
    """The counts of all runs, dead ones too; only Spark itself knows late groups, and takes them along."""
    with workspace.metastore() as metastore:
        runs = metastore.runs("hourly")
    return replace(sum((run.counts for run in runs), Counts()), late_groups=0)


def _rejected(workspace: Workspace) -> list[tuple[Any, ...]]:
    rows = workspace.quarantined("hourly")
    return sorted((str(row["reasons"]), row["payload"], row["batch_id"]) for row in rows)


@pytest.mark.parametrize(
    ("sink", "moments"),
    [
        (("delta", "audited", "mode: append"), AUDITED_MOMENTS),
        (("delta", "direct", "mode: append"), ["after batch.show 2"]),
        (("parquet", "direct", "mode: append"), ["after batch.stage 2"]),
        (("delta", "audited", UPDATE), UPDATE_MOMENTS),
        (("delta", "direct", UPDATE), ["after batch.show 2"]),
        (("delta", "audited", COMPLETE), ["before publish.commit", "after publish.commit"]),
        (("delta", "direct", COMPLETE), ["after batch.show 2"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_drain_may_die_between_any_two_steps(
    tmp_path: Path, spark: SparkSession, sink: tuple[str, str, str], moments: list[str]
) -> None:
    control = _project(tmp_path / "control", spark, sink)
    killed = _project(tmp_path / "killed", spark, sink)
    merged = "append" not in sink[2]
    for wave, moment in enumerate(moments):
        _land(control, wave)
        _land(killed, wave)
        control.run("hourly")
        die(killed, "hourly", moment)
        killed.run("hourly")
        assert _rows(killed, spark, sink[0]) == _rows(control, spark, sink[0]), moment
        assert _noted(killed, merged) == _noted(control, merged), moment
        assert _rejected(killed) == _rejected(control), moment
        assert _in_runs(killed) == _in_runs(control), moment
        assert _staged(killed) == _staged(control) == [], moment
    assert _rows(control, spark, sink[0])
    assert len(_rejected(control)) == 2 * HOURS * len(moments)
