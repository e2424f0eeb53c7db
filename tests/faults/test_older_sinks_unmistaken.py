"""A sink whose log Spark has shortened is not taken for an older copy."""

from __future__ import annotations

import pytest

from tests.support.kill_matrix import NAME
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.capability("RIGHT-05")
SPEC = """
sources:
  events:
    format: csv
    path: landing/events
    schema: events.ddl
    options: {header: true, maxFilesPerTrigger: 1}
transform: transform.sql
sink: {format: parquet, path: tables/found, schema: out.ddl, partition_by: [kind]}
conf: {spark.sql.streaming.fileSink.log.cleanupDelay: 1ms}
"""
FILES = {
    "events_ddl": "id INT, kind STRING",
    "out_ddl": "id INT, kind STRING",
    "transform_sql": "SELECT id, kind FROM events WHERE id >= 0",
}
QUIET = 42
"""Batches without a row: Spark's sink log has compacted and forgotten the entries before them."""


def test_a_log_of_files_that_spark_has_shortened_is_no_older_copy(sandbox: Sandbox) -> None:
    sandbox.pipeline(NAME, SPEC, **FILES)
    sandbox.land("landing/events/0.csv", ["id,kind", "1,a"], mtime=1)
    for number in range(1, QUIET):
        sandbox.land(f"landing/events/{number}.csv", ["id,kind", "-1,a"], mtime=number + 1)
    sandbox.run(NAME)
    log = sandbox.storage / "tables/found/_spark_metadata"
    assert not (log / "0").exists(), "Spark has removed the entry"
    sandbox.land("landing/events/last.csv", ["id,kind", "2,a"], mtime=QUIET + 1)
    sandbox.run(NAME)
    assert sandbox.spark is not None
    rows = sandbox.spark.read.parquet(str(sandbox.storage / "tables/found")).collect()
    assert sorted(row.id for row in rows) == [1, 2]
