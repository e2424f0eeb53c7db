"""One pass over the slice gives what Great Expectations' own engine computes job by job."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from drawdown.quality import gx_import
from drawdown.quality.expectations import build_expectations
from tests.support.quality import pipeline_with

SCHEMA = "id INT, k STRING, v DOUBLE, w DOUBLE, n BIGINT, at TIMESTAMP, done TIMESTAMP, fare DECIMAL(10,2)"
EXPECTATIONS = """
expectations:
  - {type: expect_table_row_count_to_equal, kwargs: {value: 40}}
  - {type: expect_column_values_to_not_be_null, kwargs: {column: v, mostly: 0.8}}
  - {type: expect_column_values_to_be_null, kwargs: {column: w, mostly: 0.1}}
  - {type: expect_column_values_to_be_in_set, kwargs: {column: k, value_set: [a, b], mostly: 0.5}}
  - {type: expect_column_values_to_not_be_in_set, kwargs: {column: k, value_set: [d]}}
  - {type: expect_column_values_to_be_between, kwargs: {column: v, min_value: 0, max_value: 80}}
  - {type: expect_column_values_to_be_between, kwargs: {column: n, min_value: 2, strict_min: true}}
  - {type: expect_column_values_to_match_regex, kwargs: {column: k, regex: "^[abc]$"}}
  - {type: expect_column_value_lengths_to_equal, kwargs: {column: k, value: 1}}
  - {type: expect_column_values_to_be_unique, kwargs: {column: id}}
  - {type: expect_column_values_to_be_unique, kwargs: {column: v}}
  - {type: expect_column_values_to_be_unique, kwargs: {column: n, mostly: 0.3}}
  - {type: expect_compound_columns_to_be_unique, kwargs: {column_list: [id, k]}}
  - type: expect_compound_columns_to_be_unique
    kwargs: {column_list: [k, n], ignore_row_if: any_value_is_missing}
  - {type: expect_select_column_values_to_be_unique_within_record, kwargs: {column_list: [v, w]}}
  - type: expect_multicolumn_sum_to_equal
    kwargs: {column_list: [id, n], sum_total: 10, ignore_row_if: all_values_are_missing}
  - {type: expect_column_pair_values_a_to_be_greater_than_b, kwargs: {column_A: done, column_B: at}}
  - type: expect_column_pair_values_a_to_be_greater_than_b
    kwargs: {column_A: v, column_B: w, or_equal: true, ignore_row_if: either_value_is_missing}
    name: pair, either
  - type: expect_column_pair_values_to_be_equal
    kwargs: {column_A: v, column_B: w, ignore_row_if: neither}
  - type: expect_column_pair_values_to_be_in_set
    kwargs: {column_A: id, column_B: n, value_pairs_set: [[1, 1], [2, 2]], mostly: 0.1}
  - {type: expect_column_max_to_be_between, kwargs: {column: at, max_value: 2013-01-20}}
  - {type: expect_column_min_to_be_between, kwargs: {column: fare, min_value: 3}}
  - {type: expect_column_mean_to_be_between, kwargs: {column: v, min_value: 10, max_value: 60}}
  - {type: expect_column_sum_to_be_between, kwargs: {column: n, min_value: 0}}
  - {type: expect_column_stdev_to_be_between, kwargs: {column: v, max_value: 30}}
  - {type: expect_column_median_to_be_between, kwargs: {column: n, max_value: 5}}
  - {type: expect_column_unique_value_count_to_be_between, kwargs: {column: k, max_value: 3}}
  - {type: expect_column_proportion_of_unique_values_to_be_between, kwargs: {column: n, max_value: 0.5}}
  - {type: expect_column_distinct_values_to_be_in_set, kwargs: {column: k, value_set: [a, b, c]}}
  - type: expect_column_value_z_scores_to_be_less_than
    kwargs: {column: v, threshold: 2, double_sided: true}
  - type: expect_column_values_to_be_between
    kwargs: {column: v, max_value: 50, row_condition: "n > 3", condition_parser: spark}
    name: some rows
  - type: expect_column_mean_to_be_between
    kwargs: {column: v, max_value: 50, row_condition: "k = 'a'", condition_parser: spark}
    name: mean of some rows
  - type: expect_column_values_to_not_be_null
    kwargs: {column: v, row_condition: "k = 'nowhere'", condition_parser: spark}
    name: no rows
  - type: expect_column_values_to_be_unique
    kwargs: {column: n, row_condition: "k = 'a'", condition_parser: spark}
    name: unique in some rows
  - {type: expect_column_max_to_be_between, kwargs: {column: nowhere, max_value: 1}, name: no such column}
  - {type: expect_table_columns_to_match_set, kwargs: {column_set: [id, k], exact_match: false}}
"""


def rows(seed: int) -> list[tuple[Any, ...]]:
    """Forty rows with NULL and NaN; of the seed depend which expectations hold."""
    dice = random.Random(seed)
    start = datetime(2013, 1, 1, tzinfo=UTC)

    def maybe(value: Any) -> Any:
        return None if dice.random() < 0.1 * (seed % 4) else value

    def number() -> float:
        return dice.choice([float("nan"), 0.0, -0.0, round(dice.uniform(0, 90), 3)])

    return [
        (
            i,
            maybe(dice.choice("abcd"[: 2 + seed % 3])),
            maybe(number()),
            maybe(number()),
            maybe(dice.randrange(10)),
            maybe(start + timedelta(days=dice.randrange(10 + 10 * seed))),
            maybe(start + timedelta(days=20 + dice.randrange(20))),
            maybe(Decimal(dice.randrange(1000)) / 4),
        )
        for i in range(40)
    ]


def judged(validator: Any, expectations: list[Any], result_format: str) -> dict[int, Any]:
    asked = validator.process_expectations_for_validation([one.configuration for one in expectations])
    told = validator.graph_validate(asked, {"result_format": {"result_format": result_format}})
    return {
        one.expectation_config.meta["position"]: (
            one.success,
            {key: str(one.result.get(key)) for key in one.result if "partial" not in key},
            bool(one.exception_info.get("raised_exception", True)) if one.exception_info else False,
        )
        for one in told
    }


@pytest.mark.parametrize(
    ("seed", "result_format"), [(1, "BASIC"), pytest.param(2, "BOOLEAN_ONLY", marks=pytest.mark.full)]
)
def test_the_verdict_on_any_rows_is_that_of_great_expectations_own_engine(
    spark: SparkSession, tmp_path: Path, seed: int, result_format: str
) -> None:
    gx_import.load()
    from great_expectations.core.batch import Batch
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
    from great_expectations.validator.validator import Validator

    from drawdown.quality.gx_validation import QuietValidator
    from drawdown.quality.one_pass import OnePassEngine

    staged = str(tmp_path / "staged")
    spark.createDataFrame(rows(seed), SCHEMA).coalesce(1).write.parquet(staged)
    slice_ = spark.newSession().read.parquet(staged)
    expectations = build_expectations(pipeline_with(EXPECTATIONS))
    own = Validator(
        execution_engine=SparkDFExecutionEngine(spark=slice_.sparkSession, persist=False),
        batches=[Batch(data=slice_)],  # type: ignore[arg-type]
    )
    expected = judged(own, expectations, result_format)
    found = judged(QuietValidator(OnePassEngine(slice_, 40), slice_), expectations, result_format)
    assert {at: (expectations[at].expectation_type, found[at]) for at in found} == {
        at: (expectations[at].expectation_type, expected[at]) for at in expected
    }
