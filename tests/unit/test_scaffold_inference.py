"""What `drawdown init` infers: types that lose nothing, and suggestions that hold for every row."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawdown.errors import SpecError
from drawdown.scaffold.column_types import SampleColumn, of_texts, of_values
from drawdown.scaffold.inferred_folder import folder_files, source_name
from drawdown.scaffold.project_files import write_folder, write_project
from drawdown.scaffold.sample import Sample, of_records, read_sample
from drawdown.scaffold.suggestion import suggest
from drawdown.spec import load_pipelines, load_project


@pytest.mark.parametrize(
    ("texts", "type"),
    [
        (["1", "-20", "0"], "BIGINT"),
        (["1", "007"], "STRING"),
        (["1234567890123456789"], "STRING"),
        (["1", "2.5", "1e3"], "DOUBLE"),
        (["true", "False"], "BOOLEAN"),
        (["2024-02-29", "2024-03-01"], "DATE"),
        (["2023-02-29"], "STRING"),
        (["2024-02-29T10:00:00Z", "2024-02-29 10:00:00.123456"], "TIMESTAMP"),
        (["2024-02-29T10:00:00+01:00"], "TIMESTAMP"),
        (["10:30"], "STRING"),
        (["1,5"], "STRING"),
        ([], "STRING"),
    ],
)
def test_a_type_takes_every_text_and_loses_nothing(texts: list[str], type: str) -> None:
    assert of_texts("x", texts).type == type


def test_a_time_that_spark_reads_only_with_a_format_gets_one_unless_day_and_month_could_be_swapped() -> None:
    assert of_texts("at", ["13/02/2024 10:00"]) == SampleColumn("at", "TIMESTAMP", "dd/MM/yyyy HH:mm")
    assert of_texts("at", ["02/13/2024 10:00"]) == SampleColumn("at", "TIMESTAMP", "MM/dd/yyyy HH:mm")
    assert of_texts("at", ["02/03/2024 10:00"]) == SampleColumn("at", "STRING")


def test_money_is_a_decimal_and_other_fractions_are_not() -> None:
    assert of_texts("unit_price", ["1", "12.50"]).type == "DECIMAL(18,2)"
    assert of_texts("unit_price", ["1.255"]).type == "DOUBLE"
    assert of_texts("temperature", ["12.50"]).type == "DOUBLE"


@pytest.mark.parametrize(
    ("values", "type"),
    [
        ([1, 2.5, None], "DOUBLE"),
        ([1, "x"], "STRING"),
        ([True, 1], "STRING"),
        ([2**63], "STRING"),
        (["2024-01-01T00:00:00Z"], "TIMESTAMP"),
        ([["a"], []], "ARRAY<STRING>"),
        ([{"a": 1}, {"b c": [2.5]}], "STRUCT<a: BIGINT, `b c`: ARRAY<DOUBLE>>"),
        ([{}], "STRING"),
    ],
)
def test_a_type_of_json_takes_every_value(values: list[Any], type: str) -> None:
    assert of_values("x", values).type == type


@pytest.mark.parametrize(
    ("name", "plain"),
    [("Order ID", "order_id"), ("amountEUR", "amountEUR"), ("2nd", "column_2nd"), ("€", "column")],
)
def test_a_column_goes_on_under_a_name_without_quotes(name: str, plain: str) -> None:
    assert SampleColumn(name, "STRING").plain_name == plain


def sampled(folder: Path, text: str, name: str = "sample.csv") -> Sample:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return read_sample(path)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_a_csv_file_says_how_it_is_read(tmp_path: Path, separator: str) -> None:
    lines = [["id", "n"], ["a", "1"], ["b", "NA"]]
    found = sampled(tmp_path, "\n".join(separator.join(line) for line in lines))
    assert dict(found.options) == {
        "header": True, "nullValue": "NA", **({} if separator == "," else {"sep": separator}),
    }  # fmt: skip
    assert [column.type for column in found.columns] == ["STRING", "BIGINT"]
    assert found.rows[1]["n"] is None


def test_a_file_without_a_header_gets_names(tmp_path: Path) -> None:
    found = sampled(tmp_path, "a,1\nb,2\n")
    assert found.options["header"] is False
    assert [column.name for column in found.columns] == ["column_1", "column_2"]


def test_a_format_of_times_is_for_the_whole_file_so_others_stay_text(tmp_path: Path) -> None:
    found = sampled(tmp_path, "a,b\n13.01.2024 10:00,2024-01-13T10:00:00Z\n")
    assert [column.type for column in found.columns] == ["TIMESTAMP", "STRING"]


@pytest.mark.parametrize(
    ("name", "text", "id"),
    [
        ("x.csv", "", "init.sample-empty"),
        ("x.csv", "id,name\n", "init.sample-empty"),
        ("x.json", "[]", "init.sample-empty"),
        ("x.json", "[1, 2]", "init.sample-unreadable"),
        ("x.json", "{", "init.sample-unreadable"),
        ("x.parquet", "no parquet", "init.sample-unreadable"),
    ],
)
def test_a_sample_that_shows_no_columns_is_refused(tmp_path: Path, name: str, text: str, id: str) -> None:
    with pytest.raises(SpecError) as refused:
        sampled(tmp_path, text, name)
    assert refused.value.id == id
    assert name in refused.value.where


def test_a_sample_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such file"):
        read_sample(tmp_path / "none.csv")
    (tmp_path / "x.csv").write_bytes(b"id\n\xff\xfe\n")
    with pytest.raises(SpecError) as refused:
        read_sample(tmp_path / "x.csv")
    assert refused.value.id == "init.sample-unreadable"


def test_the_watermark_waits_as_long_as_the_sample_shows_rows_to_be_late(tmp_path: Path) -> None:
    times = ["2024-01-01T10:00:00Z", "2024-01-01T12:30:00Z", "2024-01-01T09:00:00Z"]
    found = suggest(sampled(tmp_path, "loaded,event_time\n" + "".join(f"2024-01-02,{t}\n" for t in times)))
    assert found.event_time is not None
    assert (found.event_time.column.name, found.event_time.delay) == ("event_time", "6 hours")
    assert found.event_time.in_past


def test_a_time_that_is_missing_in_a_row_carries_no_watermark(tmp_path: Path) -> None:
    assert suggest(sampled(tmp_path, "id,at\n1,2024-01-01T10:00:00Z\n2,\n")).event_time is None


def test_a_sample_dated_ahead_of_the_clock_gets_no_bound_on_the_future(tmp_path: Path) -> None:
    ahead = datetime.now(UTC).year + 1
    sample = sampled(tmp_path, f"at\n{ahead}-01-01T10:00:00Z\n{ahead}-01-02T10:00:00Z\n")
    files = folder_files("x", "raw_x", sample, suggest(sample))
    assert "max_future" not in str(files["pipeline.yaml"])


def test_suggestions_hold_for_every_row(tmp_path: Path) -> None:
    rows = [f"{i},{'de' if i % 2 else 'fr'},{i - 1},{i}" for i in range(1, 31)]
    found = suggest(sampled(tmp_path, "order_id,country,change,amount\n" + "\n".join(rows)))
    assert found.key is not None
    assert found.key.name == "order_id"
    assert {column.name: values for column, values in found.few_values.items()} == {"country": ("de", "fr")}
    assert [column.name for column in found.never_negative] == ["change", "amount"]
    repeated = suggest(sampled(tmp_path, "order_id,n\n1,-1\n1,2\n"))
    assert repeated.key is None
    assert repeated.never_negative == ()


def csv_of(folder: Path) -> Sample:
    return sampled(
        folder, 'Order ID;at;order-id;price\n1;13.01.2024 10:00;"a;b";2.50\n2;14.01.2024 10:00;c;NA\n'
    )


def json_of(folder: Path) -> Sample:
    return sampled(
        folder, '{"id": "a", "at": "2024-01-01T10:00:00Z", "tags": ["x"], "who": {"n": 1}}', "x.jsonl.gz"
    )


def parquet_of(folder: Path) -> Sample:
    at = pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))
    of = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    pq.write_table(
        pa.table({"at": at, "of": of, "n": pa.array([1], pa.decimal128(20, 2))}), folder / "x.parquet"
    )
    return read_sample(folder / "x.parquet")


def topic_of(folder: Path) -> Sample:
    return of_records(['{"id": 1, "at": "2024-01-01T10:00:00Z"}'], "orders")


def text_topic_of(folder: Path) -> Sample:
    return of_records(["plain text", "{"], "lines")


@pytest.mark.parametrize("made", [csv_of, json_of, parquet_of, topic_of, text_topic_of])
def test_the_folder_of_a_sample_is_a_valid_pipeline_with_a_test(tmp_path: Path, made: Any) -> None:
    sample = made(tmp_path)
    root = tmp_path / "project"
    write_project(root)
    (root / "include/pipelines").mkdir()
    write_folder(root / "include/pipelines/orders", folder_files("orders", "raw_x", sample, suggest(sample)))
    [pipeline] = load_pipelines(load_project(root))
    assert list(pipeline.sources) == ["raw_x"]
    from drawdown.testing.cases.case import load_cases

    [case] = load_cases(pipeline)
    expected = case.expected(1, "expected")
    assert expected is not None
    rows = [json.loads(line) for line in expected.read_text().splitlines()]
    assert len(rows) == len(sample.rows or sample.records)
    names = [line.split()[0] for line in str(pipeline.sink_schema_ddl).split(",\n")]
    assert set(rows[0]) <= set(names)
    assert len({name.lower() for name in names}) == len(names)


@pytest.mark.parametrize(
    ("told", "name"), [("Orders 2024", "raw_orders_2024"), ("ü", "raw_rows"), ("table", "raw_table")]
)
def test_the_source_has_a_name_that_sql_takes(told: str, name: str) -> None:
    assert source_name(told) == name


def test_columns_of_one_name_after_all_are_numbered(tmp_path: Path) -> None:
    sample = csv_of(tmp_path)
    files: dict[str, Any] = folder_files("x", "raw_x", sample, suggest(sample))
    assert list(_names(files["schemas/output.ddl"])) == ["order_id", "at", "order_id_2", "price"]


def _names(ddl: str) -> Sequence[str]:
    return [line.split()[0] for line in ddl.strip().split(",\n")]


def test_a_parquet_column_that_spark_cannot_read_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": pa.array([1], pa.time64("us"))}), tmp_path / "x.parquet")
    with pytest.raises(SpecError, match="time64") as refused:
        read_sample(tmp_path / "x.parquet")
    assert refused.value.id == "init.sample-type"
