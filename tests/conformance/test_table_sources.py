"""SRC-17: a pipeline that streams the table of another one, by name or by path, and Delta's own options."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from drawdown.errors import RefusedError, SpecError
from tests.support.refusals import refused, refused_spec
from tests.support.workspace import Workspace

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


def _upstream(
    workspace: Workspace, more: str = "table: src17_sales", sql: str = "SELECT * FROM sales"
) -> None:
    workspace.pipeline("sold", UPSTREAM.replace("MORE", more), sales_ddl=DDL, transform_sql=sql)


def _downstream(workspace: Workspace, name: str, source: str, sql: str = "SELECT * FROM sales") -> None:
    spec = DOWNSTREAM.replace("SOURCE", source).replace("NAME", name)
    workspace.pipeline(name, spec, out_ddl=DDL, transform_sql=sql)


def _sell(workspace: Workspace, file: int, **amounts: int) -> None:
    rows = [{"shop": shop, "amount": n} for shop, n in amounts.items()]
    workspace.land_json(f"landing/sales/{file}.json", rows, mtime=file)


@pytest.mark.conformance("SRC-17")
def test_a_pipeline_streams_the_table_of_another(workspace: Workspace) -> None:
    _upstream(workspace)
    _sell(workspace, 1, a=1)
    _sell(workspace, 2, b=2)
    workspace.run("sold")
    _downstream(workspace, "by_name", "format: table, table: src17_sales, options: {maxFilesPerTrigger: 1}")
    _downstream(workspace, "by_path", "format: delta, path: tables/src17, options: {startingVersion: 2}")
    _downstream(
        workspace,
        "skipping",
        "format: table, table: src17_sales, options: {ignoreDeletes: true, skipChangeCommits: true}",
    )
    # Given in the wrong order: the table is written before it is read.
    _sell(workspace, 3, c=3)
    reports = workspace.drain("by_name", "skipping", "sold")
    assert (reports[0].pipeline, reports[0].error) == ("sold", None)
    by_name = next(report.run for report in reports if report.pipeline == "by_name")
    assert by_name is not None
    assert by_name.batches == 3, "one file each"
    workspace.run("by_path")
    everything = [("a", 1), ("b", 2), ("c", 3)]
    assert workspace.delta("tables/by_name") == workspace.delta("tables/skipping") == everything
    assert workspace.delta("tables/by_path") == [("b", 2), ("c", 3)]

    # Somebody corrects the table by hand: a change of old rows, which a stream does not take ...
    DeltaTable(str(workspace.storage / "tables/src17")).delete("shop = 'a'")
    _sell(workspace, 4, d=4)
    workspace.run("sold")
    workspace.run("skipping")
    assert workspace.delta("tables/skipping") == [*everything, ("d", 4)]
    # ... unless it is told to go on. Nothing of the batch is visible.
    error = workspace.drain("by_path")[0].error
    assert isinstance(error, RefusedError)
    assert error.id == "source.rows-changed"
    assert "skipChangeCommits" in error.do
    assert workspace.delta("tables/by_path") == [("b", 2), ("c", 3)]


@pytest.mark.parametrize("mode", ["mode: update, keys: [shop]", "mode: complete"])
def test_a_table_whose_rows_change_is_not_streamed(workspace: Workspace, mode: str) -> None:
    totals = "SELECT shop, sum(amount) AS amount FROM sales GROUP BY shop"
    _upstream(workspace, mode + ", options: {delta.enableChangeDataFeed: true}", totals)
    _sell(workspace, 1, a=1)
    workspace.run("sold")
    _downstream(workspace, "streamed", "format: delta, path: tables/src17")
    error = refused(workspace, "streamed", "source.changing-table", SpecError)
    assert "readChangeFeed" in error.do
    assert "static: true" in error.do

    changes = "SELECT shop, amount FROM sales WHERE _change_type IN ('insert', 'update_postimage')"
    _downstream(
        workspace, "changes", "format: delta, path: tables/src17, options: {readChangeFeed: true}", changes
    )
    workspace.run("changes")
    _sell(workspace, 2, a=2)
    workspace.run("sold")
    workspace.run("changes")
    assert workspace.delta("tables/changes") == [("a", 1), ("a", 3)]


def test_a_table_that_nobody_writes_is_named(workspace: Workspace) -> None:
    _upstream(workspace)
    spec = DOWNSTREAM.replace("SOURCE", "format: table, table: src17_sale").replace("NAME", "out")
    error = refused_spec(workspace, "out", spec, "spec.unknown-table", out_ddl=DDL)
    assert "'src17_sales'" in error.what
