"""SINK: Delta tables in every output mode, and file formats."""

from __future__ import annotations

import pytest

from drawdown.errors import TransformError
from tests.support.refusals import refused_spec
from tests.support.workspace import Workspace

SPEC = """
sources:
  sales: {format: json, path: landing/sales, schema: sales.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: delta, path: tables/totals, schema: totals.ddl, SINK}
state: {partitions: 2}
"""
FILES = {
    "sales_ddl": "shop STRING, amount BIGINT",
    "totals_ddl": "shop STRING, total BIGINT",
    "transform_sql": "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop",
}
UPDATE, COMPLETE = "mode: update, keys: [shop]", "mode: complete"


@pytest.mark.conformance("SINK-02")
@pytest.mark.parametrize(
    ("mode", "publish"),
    [
        ("append", "audited"),
        (UPDATE, "audited"),
        (UPDATE, "direct"),
        (COMPLETE, "audited"),
        (COMPLETE, "direct"),
    ],
)
def test_delta_appends_upserts_by_keys_and_replaces(workspace: Workspace, mode: str, publish: str) -> None:
    files = dict(FILES)
    if mode == "append":
        mode, files["transform_sql"] = "mode: append", "SELECT shop, amount AS total FROM sales"
    workspace.pipeline("totals", SPEC.replace("SINK", f"{mode}, publish: {publish}"), **files)
    _sell(workspace, 1, a=1, none=5)
    _sell(workspace, 2, a=2, b=3)
    run = workspace.run("totals")
    sold = [("a", 1), ("a", 2), ("b", 3), (None, 5)]
    assert sorted(workspace.delta("tables/totals"), key=str) == (
        sold if mode == "mode: append" else _summed(sold)
    )
    # Update stages the two keys of each batch, complete all keys so far.
    assert run.counts.staged == run.counts.published == (5 if mode == COMPLETE else 4)

    _sell(workspace, 3, c=7, none=1)
    workspace.run("totals")
    sold += [("c", 7), (None, 1)]
    expected = sorted(sold, key=str) if mode == "mode: append" else _summed(sold)
    assert sorted(workspace.delta("tables/totals"), key=str) == sorted(expected, key=str)
    assert _staged(workspace) == []


def test_two_rows_of_one_key_in_a_batch_are_refused(workspace: Workspace) -> None:
    files = {**FILES, "transform_sql": "SELECT shop, amount AS total FROM sales"}
    workspace.pipeline("totals", SPEC.replace("SINK", f"{UPDATE}, publish: direct"), **files)
    _sell(workspace, 1, a=1)
    workspace.run("totals")
    rows = [{"shop": shop, "amount": n} for shop in ("b", None) for n in (1, 2)]
    workspace.land_json("landing/sales/2.json", rows, mtime=2)
    with pytest.raises(TransformError) as caught:
        workspace.run("totals")
    assert caught.value.id == "sink.duplicate-keys"
    assert "2 key(s)" in caught.value.what
    assert "shop='b'" in caught.value.what
    assert "shop=None" in caught.value.what
    assert workspace.delta("tables/totals") == [("a", 1)]
    assert _staged(workspace) == []

    (workspace.root / "include/pipelines/totals/transform.sql").write_text(
        "SELECT shop, CAST(amount AS BIGINT) AS total FROM sales WHERE amount <> 2"
    )
    workspace.run("totals")
    assert workspace.delta("tables/totals") == [(None, 1), ("a", 1), ("b", 1)]


def test_keys_are_columns_of_the_declared_schema(workspace: Workspace) -> None:
    spec = SPEC.replace("SINK", "mode: update, keys: [shops]")
    error = refused_spec(workspace, "totals", spec, "spec.unknown-column", **FILES)
    assert "did you mean 'shop'" in error.what


def _sell(workspace: Workspace, file: int, **amounts: int) -> None:
    """One file; the shop `none` is NULL."""
    rows = [{"shop": None if shop == "none" else shop, "amount": n} for shop, n in amounts.items()]
    workspace.land_json(f"landing/sales/{file}.json", rows, mtime=file)


def _summed(sold: list[tuple[str | None, int]]) -> list[tuple[str | None, int]]:
    shops = sorted({shop for shop, _ in sold}, key=str)
    return sorted(((s, sum(n for shop, n in sold if shop == s)) for s in shops), key=str)


def _staged(workspace: Workspace) -> list[str]:
    return [path for path in workspace.snapshot() if "/staged/" in path and path.endswith(".parquet")]
