"""SINK and MODE: the user's own code, console and memory as sinks, and which modes a sink takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drawdown.errors import TransformError
from tests.support.refusals import refused, refused_spec
from tests.support.sales import sell
from tests.support.sandbox import Sandbox, sorted_rows
from tests.support.spark import cached

SPEC = """
sources:
  sales: {format: json, path: landing/sales, schema: sales.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {SINK}
state: {partitions: 2}
"""
FILES = {
    "sales_ddl": "shop STRING, amount BIGINT",
    "transform_sql": "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop",
}

FAN_OUT = """
import json

FOLDER = "{folder}"


def write(batch, token):
    batch.write.format("delta").mode("append").options(**token.delta_options).save(FOLDER + "/all")
    small = batch.where("total < 10")
    small.write.format("delta").mode("append").options(**token.delta_options).save(FOLDER + "/small")
    with open(FOLDER + "/calls", "a") as calls:
        calls.write(json.dumps([str(token), batch.count(), batch.storageLevel.useMemory]) + "\\n")
    if token.batch_id == 1 and sum(1 for _ in open(FOLDER + "/calls")) == 2:
        raise ValueError("the second place is away")
"""


@pytest.mark.conformance("SINK-07")
def test_a_function_writes_each_batch_to_several_places_once(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    sandbox.pipeline(
        "totals",
        SPEC.replace("SINK", "format: foreach_batch, function: places.py, mode: update"),
        **FILES,
        places_py=FAN_OUT.replace("{folder}", str(tmp_path / "out")),
    )
    sell(sandbox, 1, a=1, b=20)
    sandbox.run("totals")
    sell(sandbox, 2, a=2)
    sell(sandbox, 3, a=30)
    with pytest.raises(TransformError) as caught:
        sandbox.run("totals")
    assert (caught.value.id, "places.py:14" in caught.value.where) == ("sink.raised", True)
    assert "the second place is away" in caught.value.what
    run = sandbox.run("totals")

    # Batch 1 was written by both attempts under one token: Delta took it once.
    assert (run.batches, run.counts.staged, run.counts.published) == (2, 2, 2)
    assert sandbox.delta(f"{tmp_path}/out/all") == [("a", 1), ("a", 3), ("a", 33), ("b", 20)]
    assert sandbox.delta(f"{tmp_path}/out/small") == [("a", 1), ("a", 3)]
    calls = [json.loads(line) for line in (tmp_path / "out" / "calls").read_text().splitlines()]
    assert calls == [
        ["totals/1/0", 2, True],
        ["totals/1/1", 1, True],
        ["totals/1/1", 1, True],
        ["totals/1/2", 1, True],
    ]
    assert sandbox.spark is not None
    assert cached(sandbox.spark) == [], "each batch is released"


WRITER = """
import json
import os


class Writer:
    def open(self, partition_id, epoch_id):
        self.lines = []
        self.name = "{folder}/%s-%s" % (epoch_id, partition_id)
        return True

    def process(self, row):
        if row.total == 666:
            raise ValueError("no such total")
        self.lines.append([row.shop, row.total])

    def close(self, error):
        with open(self.name + (".failed" if error else ".json"), "w") as file:
            file.write(json.dumps(self.lines))
"""


@pytest.mark.conformance("SINK-08")
def test_a_class_gets_each_row_between_open_and_close(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    sandbox.pipeline(
        "totals",
        SPEC.replace("SINK", "format: foreach, function: rows.py, mode: update"),
        **FILES,
        rows_py=WRITER.replace("{folder}", str(tmp_path / "out")),
    )

    def read(epoch: int) -> list[tuple[str, int]]:
        files = (tmp_path / "out").glob(f"{epoch}-*.json")
        return sorted(tuple(row) for file in files for row in json.loads(file.read_text()))

    sell(sandbox, 1, a=1, b=2)
    sandbox.run("totals")
    assert read(0) == [("a", 1), ("b", 2)]
    sell(sandbox, 2, a=10, c=666)
    with pytest.raises(TransformError) as caught:
        sandbox.run("totals")
    assert caught.value.id == "sink.raised"
    assert "no such total" in caught.value.what
    assert "rows.py" in caught.value.what
    assert list((tmp_path / "out").glob("1-*.failed"))

    file = sandbox.root / "include/pipelines/totals/rows.py"
    file.write_text(file.read_text().replace("== 666", "== 667"))
    run = sandbox.run("totals")
    assert read(1) == [("a", 11), ("c", 666)]
    assert (run.batches, run.counts.staged) == (1, 2)


@pytest.mark.full
@pytest.mark.conformance("SINK-09")
def test_console_and_memory_are_for_tests_only(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    console = SPEC.replace("SINK", "format: console, mode: complete, options: {truncate: false}")
    memory = SPEC.replace("SINK", "format: memory, mode: complete")
    for name, spec in (("shown", console), ("kept", memory)):
        error = refused_spec(sandbox, name, spec + "schedule: '@hourly'\n", "spec.test-only", **FILES)
        assert "remove `schedule:`" in error.do
        sandbox.pipeline(name, spec, **FILES)
    sandbox.pipeline(
        "appended",
        SPEC.replace("SINK", "format: memory"),
        **{**FILES, "transform_sql": "SELECT * FROM sales"},
    )
    assert sandbox.spark is not None

    def memory_rows(name: str) -> list[tuple[object, ...]]:
        assert sandbox.spark is not None
        return sorted_rows([tuple(row) for row in sandbox.spark.table(f"global_temp.{name}").collect()])

    sell(sandbox, 1, a=1, b=2)
    for name in ("shown", "kept", "appended"):
        sandbox.run(name)
    capsys.readouterr()
    sell(sandbox, 2, a=4)
    for name in ("shown", "kept", "appended"):
        sandbox.run(name)
    printed = capsys.readouterr().out
    assert "Batch: 1" in printed
    assert "|a   |5    |" in printed
    assert "|b   |2    |" in printed
    assert memory_rows("kept") == [("a", 5), ("b", 2)]
    assert memory_rows("appended") == [("a", 1), ("a", 4), ("b", 2)]


@pytest.mark.full
@pytest.mark.conformance("MODE-10")
def test_a_sink_takes_only_its_modes(sandbox: Sandbox) -> None:
    for sink, says in [
        ("format: parquet, path: tables/x, mode: complete", "truncated"),
        ("format: csv, path: tables/x, mode: update", "use mode append, or a delta sink"),
        ("format: memory, mode: update", "use mode append or complete, or a delta sink"),
    ]:
        error = refused_spec(sandbox, "refused", SPEC.replace("SINK", sink), "spec.contradiction", **FILES)
        assert says in error.what + error.do
    declared = "schema: out.ddl"
    error = refused_spec(
        sandbox,
        "refused",
        SPEC.replace("SINK", f"format: delta, path: tables/x, mode: update, {declared}"),
        "spec.missing-key",
        **FILES,
        out_ddl="shop STRING, total BIGINT",
    )
    assert "keys" in error.what

    # What each kind does take, over two runs: files append, Delta replaces, or upserts by key.
    append = {**FILES, "transform_sql": "SELECT shop, amount AS total FROM sales"}
    schema = {"out_ddl": "shop STRING, total BIGINT"}
    delta = "format: delta, path: tables/PATH, schema: out.ddl, mode: "
    taken = {
        "files": ("format: parquet, path: tables/files", append),
        "whole": (delta.replace("PATH", "whole") + "complete", {**FILES, **schema}),
        "upserted": (delta.replace("PATH", "upserted") + "update, keys: [shop]", {**FILES, **schema}),
    }
    for name, (sink, files) in taken.items():
        sandbox.pipeline(name, SPEC.replace("SINK", sink), **files)
    for wave in (1, 2):
        sell(sandbox, wave, a=wave, **{f"b{wave}": 1})
        for name in taken:
            sandbox.run(name)
    assert sandbox.spark is not None
    written = sandbox.spark.read.parquet(str(sandbox.storage / "tables/files")).collect()
    assert sorted(tuple(row) for row in written) == [("a", 1), ("a", 2), ("b1", 1), ("b2", 1)]
    for name in ("whole", "upserted"):
        assert sandbox.delta(f"tables/{name}") == [("a", 3), ("b1", 1), ("b2", 1)]


def test_what_cannot_be_read_back_takes_no_expectations(sandbox: Sandbox) -> None:
    sink = "format: foreach, function: rows.py"
    quality = "expectations: [{type: expect_column_values_to_not_be_null, kwargs: {column: shop}}]\n"
    files = {**FILES, "rows_py": WRITER, "quality_yaml": quality}
    error = refused_spec(sandbox, "totals", SPEC.replace("SINK", sink), "spec.contradiction", **files)
    assert "rules:" in error.do


@pytest.mark.parametrize(
    ("kind", "code"), [("foreach_batch", "def wrote(): ..."), ("foreach", "class Writer: ...")]
)
def test_a_file_without_the_function_is_refused(sandbox: Sandbox, kind: str, code: str) -> None:
    spec = SPEC.replace("SINK", f"format: {kind}, function: sink.py, mode: update")
    sandbox.pipeline("totals", spec, **FILES, sink_py=code)
    sell(sandbox, 1, a=1)
    error = refused(sandbox, "totals", "sink.no-function", TransformError)
    assert "define" in error.do
