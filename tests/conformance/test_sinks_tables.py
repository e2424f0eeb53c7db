"""SINK: Delta tables in every output mode, and file formats."""

from __future__ import annotations

import shutil

import pytest

from drawdown.errors import RefusedError, SpecError, TransformError
from drawdown.spec import iter_pipelines
from tests.support.refusals import refused, refused_spec
from tests.support.sales import sell
from tests.support.sandbox import Sandbox

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


@pytest.mark.sampled
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
def test_delta_appends_upserts_by_keys_and_replaces(sandbox: Sandbox, mode: str, publish: str) -> None:
    files = dict(FILES)
    if mode == "append":
        mode, files["transform_sql"] = "mode: append", "SELECT shop, amount AS total FROM sales"
    sandbox.pipeline("totals", SPEC.replace("SINK", f"{mode}, publish: {publish}"), **files)
    sell(sandbox, 1, a=1, none=5)
    sell(sandbox, 2, a=2, b=3)
    run = sandbox.run("totals")
    sold = [("a", 1), ("a", 2), ("b", 3), (None, 5)]
    assert sorted(sandbox.delta("tables/totals"), key=str) == (
        sold if mode == "mode: append" else _summed(sold)
    )
    # Update stages the two keys of each batch, complete all keys so far.
    assert run.counts.staged == run.counts.published == (5 if mode == COMPLETE else 4)

    sell(sandbox, 3, c=7, none=1)
    sandbox.run("totals")
    sold += [("c", 7), (None, 1)]
    expected = sorted(sold, key=str) if mode == "mode: append" else _summed(sold)
    assert sorted(sandbox.delta("tables/totals"), key=str) == sorted(expected, key=str)
    assert _staged(sandbox) == []


FILE_SPEC = """
sources:
  sales: {format: json, path: landing/sales, schema: sales.ddl}
sink: {format: FORMAT, path: tables/sold, partition_by: [day], options: {OPTIONS}}
conf: {spark.sql.streaming.fileSink.log.compactInterval: 2}
"""


@pytest.mark.sampled
@pytest.mark.conformance("SINK-01")
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("parquet", "compression: gzip"),
        ("orc", ""),
        ("json", "ignoreNullFields: false"),
        ("csv", "header: true"),
        ("text", ""),
        ("json", "retention: 1ms"),
    ],
)
def test_file_formats_with_partitions(sandbox: Sandbox, kind: str, options: str) -> None:
    spec = FILE_SPEC.replace("FORMAT", kind).replace("OPTIONS", options)
    columns = "concat(shop, ' ', amount) AS value" if kind == "text" else "shop, amount"
    sql = f"SELECT {columns}, day FROM sales"
    ddl = "shop STRING, amount BIGINT, day DATE"
    sandbox.pipeline("sold", spec, sales_ddl=ddl, transform_sql=sql)
    sold = [("a", 1, "2024-01-01"), ("b", 2, "2024-01-02"), ("a", 3, "2024-01-02")]
    for wave in (1, 2, 3):
        shop, amount, day = sold[wave - 1]
        row = {"shop": shop, "amount": amount, "day": day}
        sandbox.land_json(f"landing/sales/{wave}.json", [row], mtime=wave)
        sandbox.run("sold")
    folder = sandbox.storage / "tables/sold"
    assert len(list(folder.glob("day=2024-01-02/part-*"))) == 2

    def read(schema: str | None) -> list[tuple[str, ...]]:
        assert sandbox.spark is not None
        reader = sandbox.spark.read.format(kind).option("header", "true")
        frame = (reader if schema is None else reader.schema(schema)).load(str(folder))
        return sorted(tuple(map(str, row)) for row in frame.collect())

    if options.startswith("retention"):
        # The log forgot, when it was compacted in the second run, what was older; the files are there.
        assert read("shop STRING, amount BIGINT") == [("a", "3", "2024-01-02")]
    elif kind == "text":
        assert read(None) == sorted((f"{shop} {amount}", day) for shop, amount, day in sold)
    else:
        assert read(ddl) == sorted((shop, str(amount), day) for shop, amount, day in sold)


@pytest.mark.full
@pytest.mark.conformance("SINK-03")
def test_a_table_is_known_by_name(sandbox: Sandbox) -> None:
    spec = SPEC.replace("SINK", "table: sink03_totals, mode: complete")
    sandbox.pipeline("totals", spec, **FILES)
    assert sandbox.spark is not None
    for wave, total in ((1, 1), (2, 3)):
        sell(sandbox, wave, a=wave)
        sandbox.run("totals")
        read = sandbox.spark.table("sink03_totals").collect()
        assert [tuple(row) for row in read] == sandbox.delta("tables/totals") == [("a", total)]

    # A second pipeline of the project that wants the name is refused, and so is any other table.
    other = spec.replace("tables/totals", "tables/others")
    sandbox.pipeline("others", other, **FILES)
    caught = [each for each in iter_pipelines(sandbox.project) if isinstance(each, SpecError)]
    assert {error.id for error in caught} == {"spec.shared-table"}
    shutil.rmtree(sandbox.root / "include" / "pipelines" / "totals")
    error = sandbox.drain("others")[0].error
    assert error is not None
    assert error.id == "sink.table-taken"


@pytest.mark.sampled
@pytest.mark.conformance("SINK-10")
@pytest.mark.parametrize(("kind", "mode"), [("delta", "append"), ("delta", UPDATE), ("parquet", "append")])
def test_an_empty_checkpoint_over_a_filled_sink_is_refused(sandbox: Sandbox, kind: str, mode: str) -> None:
    files, mode = dict(FILES), mode if mode == UPDATE else f"mode: {mode}"
    if mode != UPDATE:
        files["transform_sql"] = "SELECT shop, amount AS total FROM sales"
    spec = SPEC.replace("SINK", mode).replace("delta", kind)
    sandbox.pipeline("totals", spec, **files)
    for wave in (1, 2):
        sell(sandbox, wave, a=1)
        sandbox.run("totals")
    assert sandbox.spark is not None
    path = str(sandbox.storage / "tables/totals")

    def read() -> list[tuple[object, ...]]:
        assert sandbox.spark is not None
        return [tuple(row) for row in sandbox.spark.read.format(kind).load(path).collect()]

    before = read()
    assert before == ([("a", 2)] if mode == UPDATE else [("a", 1), ("a", 1)])
    # The same folder under another name has a checkpoint of its own, and the old metastore: a copy.
    folders = sandbox.root / "include" / "pipelines"
    (folders / "totals").rename(sandbox.root / "aside")
    sandbox.pipeline("copied", spec, **files)
    error = refused(sandbox, "copied", "sink.not-ours", RefusedError)
    assert "has never run" in error.what
    assert "sink.path" in error.do
    shutil.rmtree(folders / "copied")
    (sandbox.root / "aside").rename(folders / "totals")
    # The checkpoint's folder is lost, the sink is not.
    checkpoint = sandbox.storage / "_drawdown/totals/checkpoint-1"
    checkpoint.rename(sandbox.root / "lost")
    sell(sandbox, 3, a=1)
    error = refused(sandbox, "totals", "checkpoint.missing", RefusedError)
    assert "drawdown checkpoint verify totals" in error.do, "there is no snapshot to name"
    assert read() == before


def test_two_rows_of_one_key_in_a_batch_are_refused(sandbox: Sandbox) -> None:
    files = {**FILES, "transform_sql": "SELECT shop, amount AS total FROM sales"}
    sandbox.pipeline("totals", SPEC.replace("SINK", f"{UPDATE}, publish: direct"), **files)
    sell(sandbox, 1, a=1)
    sandbox.run("totals")
    rows = [{"shop": shop, "amount": n} for shop in ("b", None) for n in (1, 2)]
    sandbox.land_json("landing/sales/2.json", rows, mtime=2)
    with pytest.raises(TransformError) as caught:
        sandbox.run("totals")
    assert caught.value.id == "sink.duplicate-keys"
    assert "2 keys" in caught.value.what
    assert "shop='b'" in caught.value.what
    assert "shop=None" in caught.value.what
    assert sandbox.delta("tables/totals") == [("a", 1)]
    assert _staged(sandbox) == []

    (sandbox.root / "include/pipelines/totals/transform.sql").write_text(
        "SELECT shop, CAST(amount AS BIGINT) AS total FROM sales WHERE amount <> 2"
    )
    sandbox.run("totals")
    assert sandbox.delta("tables/totals") == [(None, 1), ("a", 1), ("b", 1)]


def test_keys_are_columns_of_the_declared_schema(sandbox: Sandbox) -> None:
    spec = SPEC.replace("SINK", "mode: update, keys: [shops]")
    error = refused_spec(sandbox, "totals", spec, "spec.unknown-column", **FILES)
    assert "did you mean 'shop'" in error.what


def _summed(sold: list[tuple[str | None, int]]) -> list[tuple[str | None, int]]:
    shops = sorted({shop for shop, _ in sold}, key=str)
    return sorted(((s, sum(n for shop, n in sold if shop == s)) for s in shops), key=str)


def _staged(sandbox: Sandbox) -> list[str]:
    return [path for path in sandbox.snapshot() if "/staged/" in path and path.endswith(".parquet")]
