"""Disks that are full, really: of the checkpoint, of the sink, of the metastore.

The run ends with one error that names the disk; nothing torn is visible; with space again the next run
goes on, and the rows are those of a run that never failed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from drawdown.application.watcher import Report
from drawdown.errors import DrawdownError
from drawdown.spark.full_disks import full_disk
from tests.support.sandbox import Sandbox, multiset
from tests.support.small_disk import small_disk

SPEC = """
sources:
  events:
    format: json
    path: landing/events
    schema: "id INT, name STRING, at TIMESTAMP"
    options: {maxFilesPerTrigger: 1}
    watermark: {column: at, delay: 10 minutes}
transform: transform.sql
sink: {format: FORMAT, path: tables/out, publish: PUBLISH, schema: out.ddl}
state: {partitions: 2}
"""
FILES = {
    "out_ddl": "hour TIMESTAMP, name STRING, n BIGINT",
    "transform_sql": """
        SELECT window.start AS hour, max(name) AS name, count(*) AS n
        FROM events GROUP BY window(at, '1 hour')
    """,
}


def _project(root: Path, spark: SparkSession, sink: str) -> Sandbox:
    sandbox = Sandbox(root, spark)
    format, publish = sink.split()
    sandbox.pipeline("full", SPEC.replace("FORMAT", format).replace("PUBLISH", publish), **FILES)
    return sandbox


def _land(sandbox: Sandbox, wave: int) -> None:
    for file in range(2 * wave, 2 * wave + 2):
        rows = [
            {"id": i, "name": f"{i:01000}", "at": f"2024-01-01T{file:02}:00:{i % 60:02}Z"} for i in range(50)
        ]
        sandbox.land_json(f"landing/events/{file}.json", rows, mtime=1_700_000_000 + file)


def _rows(sandbox: Sandbox) -> Any:
    assert sandbox.spark is not None
    format = "delta" if (sandbox.storage / "tables/out/_delta_log").exists() else "parquet"
    if not (sandbox.storage / "tables/out").exists():
        return multiset([])
    frame = sandbox.spark.read.format(format).load(str(sandbox.storage / "tables/out"))
    return multiset(tuple(row) for row in frame.collect())


def _error(sandbox: Sandbox) -> DrawdownError:
    with pytest.raises(DrawdownError) as caught:
        sandbox.run("full")
    return caught.value


def _case(id: str, sink: str, disk: str, leave: int = 0, *, full: bool = False) -> Any:
    marks = [
        pytest.mark.fault(id, "delta" if "delta" in sink else "files"),
        *([pytest.mark.full] if full else []),
    ]
    return pytest.param(sink, disk, leave, marks=marks)


@pytest.mark.parametrize(
    ("sink", "disk", "leave"),
    [
        _case("F28", "delta audited", "_drawdown"),
        _case("F28", "delta audited", "_drawdown", 16_384, full=True),
        _case("F28", "parquet direct", "_drawdown", full=True),
        _case("F29", "delta audited", "tables"),
        _case("F29", "delta direct", "tables", 8192, full=True),
        _case("F29", "parquet direct", "tables", 8192, full=True),
    ],
)
def test_a_full_disk_is_one_error_and_with_space_again_the_next_run_goes_on(
    tmp_path: Path, spark: SparkSession, sink: str, disk: str, leave: int
) -> None:
    control = _project(tmp_path / "control", spark, sink)
    full = _project(tmp_path / "full", spark, sink)
    with small_disk(full.storage / disk) as small:
        for sandbox in (control, full):
            _land(sandbox, 0)
            sandbox.run("full")
            _land(sandbox, 1)
        before = _rows(full)
        small.fill(leave)
        error = _error(full)
        _one_sentence(error, "storage.full")
        kept_there = "checkpoint" if disk == "_drawdown" else "sink"
        assert f"bytes free for the {kept_there} at {full.storage / disk}" in error.what
        assert "drawdown run full" in error.do
        assert _rows(full) == before
        with full.metastore() as metastore:
            assert metastore.runs("full")[0].error == error.as_dict()
            assert metastore.holder_of("full") is None
        small.empty()
        for sandbox in (control, full):
            assert sandbox.drain("full")[0].error is None
        assert _rows(full) == _rows(control)
        assert full.drain("full")[0] == Report("full")


@pytest.mark.fault("F28", "delta")
def test_a_full_disk_of_the_metastore_is_one_error_too(tmp_path: Path, spark: SparkSession) -> None:
    control = _project(tmp_path / "control", spark, "delta audited")
    with small_disk(tmp_path / "store") as small:
        full = _project(tmp_path / "full", spark, "delta audited")
        project = full.root / "include/project.yaml"
        project.write_text(project.read_text().replace("metastore.db", f"{tmp_path}/store/metastore.db"))
        for sandbox in (control, full):
            _land(sandbox, 0)
            sandbox.run("full")
            _land(sandbox, 1)
        before = _rows(full)
        small.fill()
        error = _error(full)
        _one_sentence(error, "metastore.full")
        assert f"{tmp_path}/store/metastore.db" in error.where
        assert _rows(full) == before
        small.empty()
        for sandbox in (control, full):
            assert sandbox.drain("full")[0].error is None
        assert _rows(full) == _rows(control)
        assert full.drain("full")[0] == Report("full")


def _one_sentence(error: DrawdownError, id: str) -> None:
    assert error.id == id, str(error)
    assert error.do
    assert not any(soup in str(error) for soup in ("java", "Exception", "\tat ", "STREAM_FAILED")), str(error)


def test_a_disk_without_space_for_an_upload_is_a_full_disk(tmp_path: Path) -> None:
    """The sentence is Hadoop's, on a machine whose disk was full."""
    sandbox = Sandbox(tmp_path / "project")
    spec = SPEC.replace("FORMAT", "delta").replace("PUBLISH", "direct")
    pipeline = sandbox.pipeline("full", spec, **FILES)
    said = (
        "org.apache.hadoop.util.DiskChecker$DiskErrorException: Could not find any valid local directory for"
        " s3ablock-0001- with requested size 67108864 on host dd-one/10.77.3.3 as the max capacity in any"
        " directory ( /tmp/s3a ) is 44679168"
    )
    found = full_disk(sandbox.project, pipeline, said)
    assert found is not None
    assert found.id == "storage.full"
