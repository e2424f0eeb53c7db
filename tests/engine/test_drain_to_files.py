"""The native file sink: parquet with Spark's own log, counts noted before the commit."""

from __future__ import annotations

import duckdb
import pytest

from drawdown.errors import RefusedError
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: events.ddl, options: {maxFilesPerTrigger: 1}}
  names: {format: csv, path: reference/names, schema: names.ddl, static: true, options: {header: true}}
transform: transform.sql
sink: {format: parquet, path: tables/named, publish: direct}
state: {partitions: 2}
"""
FILES = {
    "events_ddl": "id INT",
    "names_ddl": "id INT, name STRING",
    "transform_sql": "SELECT e.id, n.name FROM events e LEFT JOIN names n ON e.id = n.id",
}


def _written(sandbox: Sandbox) -> list[tuple[object, ...]]:
    """What Spark readers see: the files that the sink's log names."""
    assert sandbox.spark is not None
    frame = sandbox.spark.read.parquet(str(sandbox.storage / "tables/named"))
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.full
def test_twelve_batches_over_a_compaction_of_the_log(sandbox: Sandbox) -> None:
    sandbox.pipeline("named", SPEC, **FILES)
    sandbox.land("reference/names/n.csv", ["id,name", *[f"{i},n{i}" for i in range(12)]])
    for i in range(12):
        sandbox.land_json(f"landing/events/{i}.json", [{"id": i}], mtime=i + 1)
    run = sandbox.run("named")
    assert _written(sandbox) == [(i, f"n{i}") for i in range(12)]
    assert (run.counts.read, run.counts.staged, run.counts.published) == (12, 12, 12)
    with sandbox.metastore() as metastore:
        files = metastore.staged_files("named", 1, range(20))
    assert len({file.path for _, file in files}) == len(files) >= 12


def test_the_audit_of_files_sees_only_this_runs_rows(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "named",
        SPEC,
        **FILES,
        quality_yaml="""
        expectations:
          - {type: expect_column_max_to_be_between, kwargs: {column: id, min_value: 5, max_value: 9}}
        """,
    )
    sandbox.land("reference/names/n.csv", ["id,name"])
    sandbox.land_json("landing/events/a.json", [{"id": 9}])
    assert sandbox.run("named").verdict == "pass"
    sandbox.land_json("landing/events/b.json", [{"id": 5}])
    assert sandbox.run("named").verdict == "pass"
    count = duckdb.sql(f"SELECT count(*) FROM '{sandbox.storage}/tables/named/*.parquet'").fetchall()
    assert count == [(2,)]


def test_a_filled_folder_of_somebody_else_is_refused(sandbox: Sandbox) -> None:
    sandbox.pipeline("named", SPEC, **FILES)
    sandbox.land("reference/names/n.csv", ["id,name"])
    sandbox.land_json("landing/events/a.json", [{"id": 1}])
    sandbox.land("tables/named/part-0.parquet", "not ours")
    with pytest.raises(RefusedError) as refused:
        sandbox.run("named")
    assert refused.value.id == "sink.not-ours"
