"""Wrong expectations are refused by name, without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from drawdown.errors import SpecError
from drawdown.quality import gx_import
from drawdown.quality.common_expectations import EVERYDAY, is_everyday
from drawdown.quality.expectations import NOT_ON_SPARK, validate_expectations
from drawdown.spec import Expectation
from tests.support.quality import pipeline_with


def refusal(quality_yaml: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        validate_expectations(pipeline_with(quality_yaml))
    return caught.value


def test_right_expectations_are_accepted() -> None:
    validate_expectations(
        pipeline_with("""
            expectations:
              - {type: expect_table_row_count_to_be_between, kwargs: {min_value: 1}}
              - {type: expect_column_max_to_be_between, kwargs: {column: at, max_value: 2014-01-01}}
              - {type: expect_column_values_to_not_be_null, kwargs: {column: a, mostly: 0.9}, severity: warn}
        """)
    )


BOUNDS = [{"min_value": 1}, {"max_value": 2}, {"min_value": 1, "max_value": 1}]
SAMPLES: dict[str, list[dict[str, Any]]] = {
    "column": [{"column": "a"}],
    "column_list": [{"column_list": ["a", "b"]}],
    "value_set": [{"value_set": ["x", 1, 2.5]}],
    "regex": [{"regex": "^a"}],
    "value": [{"value": 3}],
}


@pytest.mark.parametrize("type", EVERYDAY)
def test_great_expectations_takes_what_is_right_beyond_doubt(type: str) -> None:
    needed, allowed = EVERYDAY[type]
    given = {key: value for name in needed for key, value in SAMPLES[name][0].items()}
    extras = [{}, *({"mostly": 0.9} for _ in {"mostly"} & allowed.keys())]
    extras += [{"row_condition": "a > 1", "condition_parser": "spark"} for _ in {"mostly"} & allowed.keys()]
    bounds: list[dict[str, Any]] = [*BOUNDS] if "min_value" in allowed else [{}]
    bounds += [{"min_value": 0.5, "strict_min": True} for _ in {"strict_min"} & allowed.keys()]
    for kwargs in [{**given, **bound, **extra} for bound in bounds for extra in extras]:
        assert is_everyday(Expectation(type=type, kwargs=kwargs)), kwargs
        validate_expectations(pipeline_with(json.dumps({"expectations": [{"type": type, "kwargs": kwargs}]})))


@pytest.mark.parametrize(
    ("type", "kwargs"),
    [
        ("expect_column_values_to_not_be_nul", {"column": "a"}),
        ("expect_column_values_to_not_be_null", {}),
        ("expect_column_values_to_not_be_null", {"column": "a", "mostly": 2}),
        ("expect_column_values_to_not_be_null", {"column": "a", "most": 1}),
        ("expect_column_values_to_be_between", {"column": "a"}),
        ("expect_column_values_to_be_between", {"column": "a", "min_value": 2, "max_value": 1}),
        ("expect_column_max_to_be_between", {"column": "count(a)", "max_value": 1}),
        ("expect_table_row_count_to_equal", {"value": True}),
        ("expect_column_values_to_be_null", {"column": "a", "row_condition": "b > 1"}),
    ],
)
def test_what_is_in_doubt_is_left_to_great_expectations(type: str, kwargs: dict[str, Any]) -> None:
    assert not is_everyday(Expectation(type=type, kwargs=kwargs))


def test_an_unknown_type_names_the_nearest() -> None:
    error = refusal("expectations: [{type: expect_column_value_to_not_be_null, kwargs: {column: a}}]")
    assert error.id == "quality.unknown-expectation"
    assert "expect_column_values_to_not_be_null" in error.do
    assert "quality.yaml, expectation 1" in error.where


def test_an_unknown_argument_names_the_nearest() -> None:
    error = refusal("""
        expectations:
          - {type: expect_table_row_count_to_be_between, kwargs: {min_value: 1}}
          - {type: expect_column_max_to_be_between, kwargs: {column: a, max_valu: 1}, name: late}
    """)
    assert error.id == "quality.unknown-argument"
    assert "max_value" in error.do
    assert "expectation 2 (late)" in error.where


@pytest.mark.parametrize(
    ("kwargs", "complaint"),
    [
        ("{max_value: 1}", "column: field required"),
        ("{column: 3, max_value: 1}", "column: str type expected"),
        ("{column: a, max_value: [1]}", "max_value"),
        ("{column: a, strict_max: [1]}", "strict_max"),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_wrong(kwargs: str, complaint: str) -> None:
    error = refusal(f"expectations: [{{type: expect_column_max_to_be_between, kwargs: {kwargs}}}]")
    assert error.id == "quality.bad-argument"
    assert complaint in error.what
    assert "\n" not in error.what


@pytest.mark.parametrize("key", ["result_format", "severity", "catch_exceptions", "meta", "batch_id"])
def test_arguments_that_change_how_an_expectation_is_run_are_refused(key: str) -> None:
    error = refusal(
        f"expectations: [{{type: expect_column_max_to_be_between, kwargs: {{column: a, {key}: COMPLETE}}}}]"
    )
    assert error.id == "quality.reserved-argument"


def test_expectations_on_other_tables_are_refused() -> None:
    error = refusal("""
        expectations:
          - {type: expect_table_row_count_to_equal_other_table, kwargs: {other_table_name: airports}}
    """)
    assert error.id == "quality.outside-the-slice"


def test_exactly_the_types_that_spark_cannot_run_are_refused() -> None:
    gx_import.load()
    from great_expectations.exceptions import MetricProviderError
    from great_expectations.execution_engine import SparkDFExecutionEngine
    from great_expectations.expectations.registry import (
        get_expectation_impl,
        get_metric_provider,
        list_registered_expectation_implementations,
    )

    engine = object.__new__(SparkDFExecutionEngine)  # asked for its type only
    without = set()
    for name in list_registered_expectation_implementations():
        metric = getattr(get_expectation_impl(name), "map_metric", None)
        try:
            if metric:
                get_metric_provider(f"{metric}.unexpected_count", engine)
        except MetricProviderError:
            without.add(name)
    judged_by_the_schema = {f"expect_column_values_to_be_{kind}" for kind in ("of_type", "in_type_list")}
    assert without - judged_by_the_schema == NOT_ON_SPARK

    for name in NOT_ON_SPARK:
        assert refusal(f"expectations: [{{type: {name}}}]").id == "quality.not-on-spark"


def test_validation_needs_no_spark_session_and_no_network_and_writes_nothing() -> None:
    code = """
import sys
calls = []
sys.addaudithook(lambda event, args: calls.append(event) if event.startswith("socket.") else None)
from drawdown.quality import gx_import
from drawdown.quality.expectations import NOT_ON_SPARK, validate_expectations
from tests.support.quality import pipeline_with
validate_expectations(pipeline_with(
    "expectations: [{type: expect_column_max_to_be_between, kwargs: {column: a, max_value: 1}}]"
))
from great_expectations import get_context
get_context(mode="ephemeral")
asked = [c for c in calls if c in ("socket.connect", "socket.getaddrinfo", "socket.sendto")]
from pyspark import SparkContext
sys.exit(str(asked) if asked else "a session" if SparkContext._active_spark_context else 0)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
