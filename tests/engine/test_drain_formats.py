"""Every file format as a source and as a sink, two runs each, the second over what the first left."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.sandbox import Sandbox, sorted_rows
from tests.support.slow import slow_transform

ROWS = [[(1, "one"), (2, "two")], [(3, "three")]]


def _land(spark: SparkSession, format: str, folder: Path, rows: list[tuple[int, str]]) -> None:
    """Files as another program would write them: moved in whole, under visible names."""
    frame = spark.createDataFrame(rows, "id INT, name STRING").coalesce(1)
    if format == "text":
        frame = frame.selectExpr("concat(id, ' ', name) AS value")
    options = {"header": "true"} if format == "csv" else {"rowTag": "row"} if format == "xml" else {}
    aside = folder.parent / f"aside-{folder.name}"
    frame.write.format(format).options(**options).mode("overwrite").save(str(aside))
    folder.mkdir(parents=True, exist_ok=True)
    for part in aside.glob("part-*"):
        part.rename(folder / f"{len(list(folder.iterdir()))}-{part.name}")


@pytest.mark.sampled
@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc", "text", "xml"])
def test_a_source_of_every_file_format(sandbox: Sandbox, spark: SparkSession, format: str) -> None:
    options = {"csv": "options: {header: true}", "xml": "options: {rowTag: row}"}.get(format, "options: {}")
    ddl = "value STRING" if format == "text" else "id INT, name STRING"
    columns = "CAST(split(value, ' ')[0] AS INT) AS id, split(value, ' ')[1] AS name"
    sandbox.pipeline(
        "named",
        f"""
        sources:
          rows: {{format: {format}, path: landing/rows, schema: rows.ddl, {options}}}
        transform: transform.sql
        sink: {{format: delta, path: tables/named, schema: out.ddl}}
        state: {{partitions: 2}}
        """,
        rows_ddl=ddl,
        out_ddl="id INT, name STRING",
        transform_sql=f"SELECT {columns if format == 'text' else 'id, name'} FROM rows",
    )
    for wave in ROWS:
        _land(spark, format, sandbox.storage / "landing/rows", wave)
        run = sandbox.run("named")
        assert (run.counts.read, run.counts.fed, run.counts.published) == (len(wave),) * 3
    assert sandbox.delta("tables/named") == sorted_rows([row for wave in ROWS for row in wave])


@pytest.mark.sampled
@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc", "text"])
def test_a_sink_of_every_file_format(sandbox: Sandbox, spark: SparkSession, format: str) -> None:
    is_text = format == "text"
    sandbox.pipeline(
        "named",
        f"""
        sources:
          rows: {{format: json, path: landing/rows, schema: rows.ddl}}
        transform: transform.sql
        sink: {{format: {format}, path: tables/named}}
        state: {{partitions: 2}}
        """,
        rows_ddl="id INT, name STRING",
        transform_sql=f"SELECT {'concat(id, space(1), name) AS value' if is_text else '*'} FROM rows",
        quality_yaml=f"""
        expectations:
          - type: expect_column_values_to_not_be_null
            kwargs: {{column: {"value" if is_text else "name"}}}
        """,
    )
    for wave in ROWS:
        _land(spark, "json", sandbox.storage / "landing/rows", wave)
        run = sandbox.run("named")
        assert (run.verdict, run.counts.staged, run.counts.published) == ("pass", len(wave), len(wave))
    ddl = "value STRING" if is_text else "id INT, name STRING"
    found = spark.read.format(format).schema(ddl).load(str(sandbox.storage / "tables/named"))
    expected = [(f"{i} {name}",) if is_text else (i, name) for wave in ROWS for i, name in wave]
    assert sorted_rows([tuple(row) for row in found.collect()]) == sorted_rows(expected)


def test_a_bound_in_time_stops_between_batches(sandbox: Sandbox) -> None:
    """The bound is so short that it has passed after the first batch; each run still makes progress."""
    sandbox.pipeline(
        "named",
        """
        sources:
          rows: {format: json, path: landing/rows, schema: rows.ddl, options: {maxFilesPerTrigger: 1}}
        transform: transform.py
        sink: {format: parquet, path: tables/named}
        state: {partitions: 2}
        drain: {max_duration: 1 second}
        """,
        rows_ddl="id INT",
        transform_py=slow_transform("rows", "id", "int", 1.1),
    )
    for i in range(3):
        sandbox.land_json(f"landing/rows/{i}.json", [{"id": i}], mtime=i + 1)
    run = sandbox.run("named")
    assert run.counts.read < 3
    assert "1 second" in str(run.stop_reason)
    seen = run.counts.read
    while report := sandbox.drain("named")[0].run:
        seen += report.counts.read
    assert seen == 3
