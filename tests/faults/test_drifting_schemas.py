"""Files whose columns are no longer those of the schema: found before their rows are read, by policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from drawdown.errors import RefusedError
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox, multiset
from tests.support.set_aside import replay
from tests.support.verdicts import verdicts

SPEC = """
sources:
  rows:
    format: FORMAT
    path: landing/rows
    schema: "id INT, name STRING"
    options: {OPTIONS}
    policy: {drift: POLICY}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
state: {partitions: 2}
"""
ASIDE = {"out_ddl": "id INT, name STRING", "transform_sql": "SELECT id, name FROM rows"}
OPTIONS = {"csv": "header: true", "json": "", "parquet": ""}


def _project(root: Path, spark: SparkSession, format: str, policy: str) -> Sandbox:
    sandbox = Sandbox(root, spark)
    _spec(sandbox, format, policy)
    return sandbox


def _spec(sandbox: Sandbox, format: str, policy: str) -> None:
    spec = SPEC.replace("FORMAT", format).replace("POLICY", policy).replace("OPTIONS", OPTIONS[format])
    sandbox.pipeline("drifting", spec, **ASIDE)


def _land(sandbox: Sandbox, format: str, name: str, columns: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """One file; `columns` as DDL."""
    names = [column.split()[0] for column in columns.split(", ")]
    if format == "json":
        sandbox.land_json(f"landing/rows/{name}.json", [dict(zip(names, row, strict=True)) for row in rows])
    elif format == "csv":
        lines = [",".join(map(str, row)) for row in [tuple(names), *rows]]
        sandbox.land(f"landing/rows/{name}.csv", lines)
    else:
        assert sandbox.spark is not None
        aside = sandbox.root / "aside"
        frame = sandbox.spark.createDataFrame(list(rows), columns).coalesce(1)
        frame.write.mode("overwrite").parquet(str(aside))
        target = sandbox.storage / f"landing/rows/{name}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        next(aside.glob("part-*")).rename(target)


DRIFTS = [
    ("csv", "id INT, name STRING, more STRING", (2, "two", "x"), "it has more columns: more"),
    ("csv", "id INT", (2,), "it lacks columns: name"),
    ("csv", "name STRING, id INT", ("two", 2), "its columns are in another order: name, id"),
    ("json", "id INT, name STRING, more STRING", (2, "two", "x"), "it has more columns: more"),
    ("parquet", "id INT, name STRING, more STRING", (2, "two", "x"), "it has more columns: more"),
    ("parquet", "id INT", (2,), "it lacks columns: name"),
]


@pytest.mark.sampled
@pytest.mark.fault("F25", "delta")
@pytest.mark.parametrize(("format", "columns", "row", "said"), DRIFTS)
def test_a_drifted_file_is_named_and_its_rows_are_set_aside(
    tmp_path: Path, spark: SparkSession, format: str, columns: str, row: tuple[Any, ...], said: str
) -> None:
    control = _project(tmp_path / "control", spark, format, "warn")
    drifted = _project(tmp_path / "drifted", spark, format, "fail")
    for sandbox in (control, drifted):
        _land(sandbox, format, "1", "id INT, name STRING", [(1, "one")])
    _land(drifted, format, "2 +%", columns, [row])

    error = refused(drifted, "drifting", "source.drift", RefusedError)
    assert said in error.what
    assert "2 +%" in error.what

    _spec(drifted, format, "quarantine")
    assert said in verdicts(drifted, "drifting")["source.drift"].what
    control.run("drifting")
    run = drifted.run("drifting")
    assert [(notice["id"], notice["about"]) for notice in run.notices] == [("source.drift", "rows")]
    assert (run.counts.read, run.counts.quarantined, run.counts.balanced) == (2, 1, True)
    assert multiset(drifted.delta("tables/out")) == multiset(control.delta("tables/out"))
    assert [found["reasons"] for found in drifted.quarantined("drifting")] == [["drift"]]


@pytest.mark.fault("F25", "delta")
def test_a_parquet_column_of_another_type_is_refused_before_spark_fails_over_it(
    tmp_path: Path, spark: SparkSession
) -> None:
    drifted = _project(tmp_path / "drifted", spark, "parquet", "warn")
    _land(drifted, "parquet", "1", "id INT, name STRING", [(1, "one")])
    _land(drifted, "parquet", "2", "id STRING, name STRING", [("2", "two")])
    error = refused(drifted, "drifting", "source.drift", RefusedError)
    assert "id is string and not int; Spark cannot read it" in error.what
    (drifted.storage / "landing/rows/2.parquet").unlink()
    drifted.run("drifting")
    assert drifted.delta("tables/out") == [(1, "one")]


@pytest.mark.fault("F25", "delta")
def test_a_warning_goes_on_and_says_so(tmp_path: Path, spark: SparkSession) -> None:
    drifted = _project(tmp_path / "drifted", spark, "json", "warn")
    _land(drifted, "json", "1", "id INT, name STRING, more STRING", [(1, "one", "x")])
    _land(drifted, "json", "2", "id STRING, name STRING", [("b", "two")])  # a value of another type
    run = drifted.run("drifting")
    assert [notice["id"] for notice in run.notices] == ["source.drift"]
    assert (run.counts.read, run.counts.malformed) == (2, 1)
    assert drifted.delta("tables/out") == [(1, "one")]
    assert [found["reasons"] for found in drifted.quarantined("drifting")] == [["malformed"]]


def test_rows_of_a_drifted_file_go_in_only_for_who_names_the_reason(
    tmp_path: Path, spark: SparkSession
) -> None:
    drifted = _project(tmp_path / "drifted", spark, "json", "quarantine")
    _land(drifted, "json", "1", "id INT, name STRING", [(1, "one")])
    _land(drifted, "json", "2", "id INT, name STRING, more STRING", [(2, "two", "x")])
    drifted.run("drifting")
    unasked = replay(drifted, "drifting")
    assert unasked.counts.replayed == 0
    assert "1 stay open (drift)" in str(unasked.stop_reason)
    assert replay(drifted, "drifting", rules=("drift",)).counts.replayed == 1
    assert multiset(drifted.delta("tables/out")) == multiset([(1, "one"), (2, "two")])
