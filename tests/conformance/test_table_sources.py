"""SRC-17: a pipeline that streams the table of another one, by name or by path, and Delta's own options."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from drawdown.errors import RefusedError, SpecError
from tests.support.refusals import refused, refused_spec
from tests.support.sales import sell
from tests.support.sandbox import Sandbox

UPSTREAM = """
sources:
  sales: {format: json, path: landing/sales, schema: sales.ddl, options: {maxFilesPerTrigger: 1}}
sink: {format: delta, path: tables/src17, schema: sales.ddl, publish: direct, MORE}
state: {partitions: 2}
"""
DOWNSTREAM = """
sources:
  sales: {SOURCE}
sink: {format: delta, path: tables/NAME, schema: out.ddl}
state: {partitions: 2}
"""
DDL = "shop STRING, amount BIGINT"


def _upstream(sandbox: Sandbox, more: str = "table: src17_sales", sql: str = "SELECT * FROM sales") -> None:
    sandbox.pipeline("sold", UPSTREAM.replace("MORE", more), sales_ddl=DDL, transform_sql=sql)


def _downstream(sandbox: Sandbox, name: str, source: str, sql: str = "SELECT * FROM sales") -> None:
    spec = DOWNSTREAM.replace("SOURCE", source).replace("NAME", name)
    sandbox.pipeline(name, spec, out_ddl=DDL, transform_sql=sql)


@pytest.mark.full
@pytest.mark.conformance("SRC-17")
def test_a_pipeline_streams_the_table_of_another(sandbox: Sandbox) -> None:
    _upstream(sandbox)
    sell(sandbox, 1, a=1)
    sell(sandbox, 2, b=2)
    sandbox.run("sold")
    _downstream(sandbox, "by_name", "format: table, table: src17_sales, options: {maxFilesPerTrigger: 1}")
    _downstream(sandbox, "by_path", "format: delta, path: tables/src17, options: {startingVersion: 2}")
    _downstream(
        sandbox,
        "skipping",
        "format: table, table: src17_sales, options: {ignoreDeletes: true, skipChangeCommits: true}",
    )
    # Given in the wrong order: the table is written before it is read.
    sell(sandbox, 3, c=3)
    reports = sandbox.drain("by_name", "skipping", "sold")
    assert (reports[0].pipeline, reports[0].error) == ("sold", None)
    by_name = next(report.run for report in reports if report.pipeline == "by_name")
    assert by_name is not None
    assert by_name.batches == 3, "one file each"
    sandbox.run("by_path")
    everything = [("a", 1), ("b", 2), ("c", 3)]
    assert sandbox.delta("tables/by_name") == sandbox.delta("tables/skipping") == everything
    assert sandbox.delta("tables/by_path") == [("b", 2), ("c", 3)]

    # Somebody corrects the table by hand: a change of old rows, which a stream does not take ...
    DeltaTable(str(sandbox.storage / "tables/src17")).delete("shop = 'a'")
    sell(sandbox, 4, d=4)
    sandbox.run("sold")
    sandbox.run("skipping")
    assert sandbox.delta("tables/skipping") == [*everything, ("d", 4)]
    # ... unless it is told to go on. Nothing of the batch is visible.
    error = sandbox.drain("by_path")[0].error
    assert isinstance(error, RefusedError)
    assert error.id == "source.rows-changed"
    assert "skipChangeCommits" in error.do
    assert sandbox.delta("tables/by_path") == [("b", 2), ("c", 3)]


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["mode: update, keys: [shop]", "mode: complete"])
def test_a_table_whose_rows_change_is_not_streamed(sandbox: Sandbox, mode: str) -> None:
    totals = "SELECT shop, sum(amount) AS amount FROM sales GROUP BY shop"
    _upstream(sandbox, mode + ", options: {delta.enableChangeDataFeed: true}", totals)
    sell(sandbox, 1, a=1)
    sandbox.run("sold")
    _downstream(sandbox, "streamed", "format: delta, path: tables/src17")
    error = refused(sandbox, "streamed", "source.changing-table", SpecError)
    assert "readChangeFeed" in error.do
    assert "static: true" in error.do

    changes = "SELECT shop, amount FROM sales WHERE _change_type IN ('insert', 'update_postimage')"
    _downstream(
        sandbox, "changes", "format: delta, path: tables/src17, options: {readChangeFeed: true}", changes
    )
    sandbox.run("changes")
    sell(sandbox, 2, a=2)
    sandbox.run("sold")
    sandbox.run("changes")
    assert sandbox.delta("tables/changes") == [("a", 1), ("a", 3)]


def test_a_table_that_nobody_writes_is_named(sandbox: Sandbox) -> None:
    _upstream(sandbox)
    spec = DOWNSTREAM.replace("SOURCE", "format: table, table: src17_sale").replace("NAME", "out")
    error = refused_spec(sandbox, "out", spec, "spec.unknown-table", out_ddl=DDL)
    assert "'src17_sales'" in error.what
