"""A plan finds columns that are not there, also those of a transform in Python, and names their lines."""

from __future__ import annotations

import pytest

from drawdown.errors import TransformError
from tests.support.refusals import planned, refused
from tests.support.sandbox import Sandbox
from tests.support.two_streams import WATERMARK, arrive, joining, spec

PIPELINE = """
sources:
  events: {format: json, path: landing/events, schema: "id INT, name STRING"}
transform: transform.py
sink: {format: delta, path: tables/out, schema: "id INT, label STRING"}
state: {partitions: 2}
"""
TRANSFORM = "def transform(sources):\n    return sources['events'].selectExpr('id', 'name AS label')\n"
QUALITY = """\
rules:
  - name: named
    check: name IS NOT NULL
    on_fail: warn
expectations:
  - type: expect_column_values_to_not_be_null
    kwargs:
      column: label
      row_condition: id > 1
      condition_parser: spark
  - type: expect_column_to_exist
    kwargs: {column: anything}
queries:
  - name: none
    unexpected: SELECT id FROM slice WHERE label = ''
"""


def _pipeline(sandbox: Sandbox, quality: str = QUALITY, transform: str = TRANSFORM) -> None:
    (sandbox.storage / "landing" / "events").mkdir(parents=True)
    sandbox.pipeline("out", PIPELINE, transform_py=transform, quality_yaml=quality)


def test_nothing_is_refused_of_what_is_right(sandbox: Sandbox) -> None:
    _pipeline(sandbox)
    assert planned(sandbox, "out").errors == ()


@pytest.mark.parametrize(
    ("old", "new", "id", "line", "said"),
    [
        ("column: label", "column: lable", "spec.unknown-column", 8, "did you mean 'label'?"),
        ("check: name", "check: nam", "rule.refused", 3, "rule named"),
        ("row_condition: id", "row_condition: idd", "expectation.refused", 9, "`idd`"),
        ("WHERE label", "WHERE lable", "query.refused", 15, "`lable`"),
    ],
)
def test_a_column_that_is_not_there_is_refused_with_its_line(
    sandbox: Sandbox, old: str, new: str, id: str, line: int, said: str
) -> None:
    _pipeline(sandbox, QUALITY.replace(old, new, 1))
    (error,) = planned(sandbox, "out").errors
    assert error.id == id
    assert error.where.endswith(f"include/pipelines/out/quality.yaml:{line}")
    assert said in str(error)
    assert "_dd_" not in str(error), "columns of Drawdown's own are no suggestion"


def test_the_output_of_python_does_not_fit_the_sink(sandbox: Sandbox) -> None:
    _pipeline(sandbox, transform="def transform(sources):\n    return sources['events']\n")
    (error,) = planned(sandbox, "out").errors
    assert error.id == "sink.schema-drift"
    assert "`label` is missing" in error.what


def test_two_streams_without_an_equality(sandbox: Sandbox) -> None:
    sql = "SELECT o.id, o.at FROM orders o JOIN payments p ON p.at > o.at AND p.at < o.at + INTERVAL 1 HOUR"
    joining(sandbox, spec(orders=WATERMARK, payments=WATERMARK), sql, "id BIGINT, at TIMESTAMP")
    arrive(sandbox, "1", orders=[(1, "10:00")], payments=[(1, "10:30")])
    error = refused(sandbox, "paid", "join.equality", TransformError)
    assert "the left side (orders)" in error.what


def test_an_equality_in_where_is_one_of_the_join(sandbox: Sandbox) -> None:
    sql = "SELECT o.id, o.at FROM orders o, payments p WHERE o.id = p.id AND p.at > o.at"
    joining(sandbox, spec(orders=WATERMARK, payments=WATERMARK), sql, "id BIGINT, at TIMESTAMP")
    assert planned(sandbox, "paid").errors == ()
