"""Published tables are read without Spark and compared as multisets."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from dev.demo.rows import Comparison, normal
from dev.demo.tables import read_table
from drawdown.errors import SourceError


def test_times_and_floats_of_two_engines_compare_equal() -> None:
    ours = normal(["t", "x"], [(datetime(2013, 1, 1, 10, tzinfo=UTC), 0.1 + 0.2)])
    theirs = normal(["x", "t"], [(0.3, datetime(2013, 1, 1, 10))])
    assert ours == theirs


def test_a_row_too_many_and_a_row_too_few_are_named() -> None:
    comparison = Comparison("t", normal(["x"], [(1,), (1,), (2,)]), normal(["x"], [(1,), (2,), (3,)]))
    assert not comparison.equal
    assert comparison.missing == [(("x", 1),)]
    assert comparison.surplus == [(("x", 3),)]


def test_a_delta_table_is_read(tmp_path: Path) -> None:
    times = pa.array([datetime(2013, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    write_deltalake(str(tmp_path / "tables" / "t"), pa.table({"t": times, "n": [7]}))
    assert read_table(tmp_path, "tables/t") == normal(["n", "t"], [(7, datetime(2013, 1, 1))])


def test_a_quarantine_shows_reasons_and_the_text_of_malformed_records(tmp_path: Path) -> None:
    rejected = pa.table({"reasons": [["malformed"], ["a", "b"]], "payload": ["{", '{"x":1}']})
    write_deltalake(str(tmp_path / "quarantine" / "p"), rejected)
    expected = normal(["reason", "payload"], [("malformed", "{"), ("a,b", None)])
    assert read_table(tmp_path, "quarantine/p") == expected


def test_only_files_in_the_sinks_log_count(tmp_path: Path) -> None:
    folder = tmp_path / "tables" / "p"
    log = folder / "_spark_metadata"
    log.mkdir(parents=True)
    for number in range(4):
        pq.write_table(pa.table({"n": [number]}), folder / f"part {number}.parquet")

    def entry(number: int) -> str:
        path = (folder / f"part {number}.parquet").as_uri()
        return json.dumps({"path": path, "action": "add"})

    (log / "0").write_text("v1\n" + entry(3))  # replaced by the compact file
    (log / "1.compact").write_text("v1\n" + entry(0) + "\n" + entry(1))
    (log / "2").write_text("v1")
    (log / ".2.crc").write_text("no log entry")
    assert read_table(tmp_path, "tables/p") == normal(["n"], [(0,), (1,)])


def test_a_table_nobody_made_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no run has made tables/t") as caught:
        read_table(tmp_path, "tables/t")
    assert caught.value.id == "demo.no-table"
