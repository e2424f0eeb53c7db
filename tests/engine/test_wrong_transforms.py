"""A case fails for each of these wrong transforms, and passes for the right one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.errors import SpecError
from drawdown.testing.cases.case_rows import Difference, difference

Compare = Callable[[str], Difference]
EVENTS = """
    SELECT * FROM VALUES
        (1, TIMESTAMP '2024-01-01 00:00:00.000001', 'a', 0.1D, 1.10BD),
        (2, TIMESTAMP '2024-01-01 00:59:59.999999', 'a', 0.2D, 2.25BD),
        (3, TIMESTAMP '2024-01-01 01:00:00.000000', NULL, 0.3D, NULL),
        (3, TIMESTAMP '2024-01-01 01:00:00.000000', NULL, 0.3D, NULL)
    AS events(id, at, k, x, d)
"""
RIGHT = """
    SELECT window(at, '1 hour').start AS hour, id, k,
        named_struct('at', at, 'x', x, 'd', d) AS nested,
        array(at, NULL) AS times, array(x, x / 3) AS numbers, map('b', x, 'a', d) AS by_name,
        x, d
    FROM events
"""
EXPECTED = """\
{"hour": "2024-01-01 00:00:00", "id": 1, "k": "a", "nested": {"at": "2024-01-01T00:00:00.000001Z", "x": 0.1, "d": 1.10}, \
"times": ["2024-01-01T00:00:00.000001Z", null], "numbers": [0.1, 0.0333333333333], "by_name": {"a": 1.1, "b": 0.1}, "x": 0.1, "d": 1.10}
{"hour": "2024-01-01 00:00:00", "id": 2, "k": "a", "nested": {"at": "2024-01-01T00:59:59.999999Z", "x": 0.2, "d": 2.25}, \
"times": ["2024-01-01T00:59:59.999999Z", null], "numbers": [0.2, 0.0666666666667], "by_name": {"a": 2.25, "b": 0.2}, "x": 0.2, "d": 2.25}
{"hour": "2024-01-01 01:00:00", "id": 3, "k": null, "nested": {"at": "2024-01-01T01:00:00Z", "x": 0.3, "d": null}, \
"times": ["2024-01-01T01:00:00Z", null], "numbers": [0.3, 0.1], "by_name": {"a": null, "b": 0.3}, "x": 0.3, "d": null}
{"hour": "2024-01-01 01:00:00", "id": 3, "k": null, "nested": {"at": "2024-01-01T01:00:00Z", "x": 0.3, "d": null}, \
"times": ["2024-01-01T01:00:00Z", null], "numbers": [0.3, 0.1], "by_name": {"a": null, "b": 0.3}, "x": 0.3, "d": null}
"""  # noqa: E501
WRONG = {
    "a window off by one": ("window(at, '1 hour')", "window(at - INTERVAL '1 microsecond', '1 hour')"),
    "lost NULLs": ("id, k,", "id, coalesce(k, '') AS k,"),
    "dropped duplicates": ("FROM events", "FROM (SELECT DISTINCT * FROM events)"),
    "a row twice": ("FROM events", "FROM events UNION ALL SELECT * FROM (" + RIGHT + ") WHERE id = 1"),
    "rows with NULL filtered": ("FROM events", "FROM events WHERE k <> 'b'"),
    "milliseconds in a struct": ("'at', at,", "'at', date_trunc('MILLISECOND', at),"),
    "milliseconds in an array": ("array(at, NULL)", "array(date_trunc('MILLISECOND', at), NULL)"),
    "the order of an array": ("array(at, NULL)", "array(NULL, at)"),
    "a NULL lost from an array": ("array(at, NULL)", "array(at)"),
    "another number in an array": ("x / 3)", "x / 3.00001D)"),
    "rounded money": ("map('b', x, 'a', d) AS by_name,\n        x, d", "map('b', x, 'a', d) AS by_name,\n"
                      "        x, CAST(round(d, 1) AS DECIMAL(3, 2)) AS d"),
    "money of a struct rounded": ("'d', d)", "'d', CAST(round(d, 1) AS DECIMAL(3, 2)))"),
    "another type": ("x, d\n", "CAST(x AS INT) AS x, d\n"),
    "a key of a map": ("map('b', x", "map('c', x"),
    "another time zone": ("SELECT window(at", "SELECT window(at + INTERVAL '1 hour'"),
}  # fmt: skip


@pytest.fixture
def compared(spark: SparkSession, tmp_path: Path) -> Compare:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.sql(EVENTS).createOrReplaceTempView("events")
    schema = session.sql(RIGHT).schema
    expected = tmp_path / "wave1.expected.jsonl"
    expected.write_text(EXPECTED)

    def compare(query: str) -> Difference:
        frame = session.sql(query)
        # A sink has the columns of its table: another type is cast, or refused before.
        cast = frame.select(
            *[frame[f"`{field.name}`"].cast(field.dataType.simpleString()) for field in schema]
        )
        return difference("output", cast.toDF(*schema.fieldNames()), expected)

    return compare


def test_the_right_transform_passes(compared: Compare) -> None:
    assert not compared(RIGHT)


def test_sums_in_another_order_pass_at_every_depth(compared: Compare) -> None:
    assert not compared(RIGHT.replace("array(x, x / 3)", "array(x + 1e-14D, x / 3)"))


@pytest.mark.parametrize("name", [pytest.param(name, id=name.replace(" ", "-")) for name in WRONG])
def test_a_wrong_transform_fails(compared: Compare, name: str) -> None:
    right, wrong = WRONG[name]
    assert right in RIGHT
    assert compared(RIGHT.replace(right, wrong))


def test_a_value_that_is_none_of_its_type_is_refused_with_its_column(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected = tmp_path / "wave1.expected.csv"
    expected.write_text("id,at,d\n1,,1.5\n2,2024-01-01 10:00:00,ten\n")
    found = spark.sql("SELECT 1 AS id, TIMESTAMP '2024-01-01 10:00:00' AS at, 1.50BD AS d")
    with pytest.raises(SpecError) as refused:
        difference("output", found, expected)
    assert refused.value.id == "test.wrong-value"
    assert refused.value.what == "column d: 'ten' is no decimal(3,2)"


@pytest.mark.parametrize("text", ["", "{}\n{}\n"])
def test_a_jsonl_without_columns_expects_rows_without_columns(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    expected = tmp_path / "wave1.expected.jsonl"
    expected.write_text(text)
    rows = len(text.splitlines())
    found = spark.range(rows)
    assert not difference("output", found, expected)
    assert difference("output", spark.range(rows + 1), expected)
