"""What of a Great Expectations result goes into a verdict."""

from __future__ import annotations

from typing import Any

import pytest

from drawdown.quality import gx_import
from drawdown.quality.gx_results import finding
from drawdown.spec import Expectation
from drawdown.spec.samples import SampleGate, Samples

ORIGIN = Expectation(type="expect_column_values_to_be_in_set", kwargs={"column": "origin"})


def found(
    result: dict[str, Any], exception_info: dict[str, Any] | None = None, samples: Samples | None = None
) -> dict[str, Any]:
    gx_import.load()
    from great_expectations.core import ExpectationValidationResult

    return finding(
        ORIGIN,
        ExpectationValidationResult(success=False, result=result, exception_info=exception_info),
        SampleGate(samples, keys=("id",)),
    )


def test_never_more_than_three_samples_are_kept() -> None:
    rows = [{"origin": f"X{i}"} for i in range(20)]
    assert found({"unexpected_rows": rows})["samples"] == rows[:3]
    assert found({"partial_unexpected_list": list("abcde")})["samples"] == ["a", "b", "c"]


def test_rows_are_preferred_to_bare_values() -> None:
    both = {"unexpected_rows": [{"origin": "XXX"}], "partial_unexpected_list": ["XXX"]}
    assert found(both)["samples"] == [{"origin": "XXX"}]


def test_an_unnamed_expectation_is_called_by_its_type_and_column() -> None:
    assert found({})["name"] == "expect_column_values_to_be_in_set(origin)"


def test_an_exception_is_one_line_in_either_of_the_two_forms_it_comes_in() -> None:
    flat = {"raised_exception": True, "exception_message": "no column\nTraceback ..."}
    by_metric = {
        "column.max": {"exception_message": "An error occurred while calling o12.agg.\n: gone\n\tat x"}
    }
    assert found({}, flat)["exception"] == "no column"
    assert found({}, by_metric)["exception"] == "gone"
    assert found({}, {"raised_exception": False, "exception_message": None})["exception"] is None
    assert found({}, {"raised_exception": True, "exception_message": ""})["exception"] is not None


ROW = {"ID": 7, "origin": "XXX", "secret": "canary"}


@pytest.mark.parametrize(
    ("samples", "shown", "value"),
    [
        (None, [{"ID": 7, "origin": "XXX"}], ["XXX"]),
        ("all", [ROW], ["XXX"]),
        ("none", [], []),
        (["secret"], [{"secret": "canary"}], []),
        (["Origin"], [{"origin": "XXX"}], ["XXX"]),
        (["other"], [], []),
    ],
)
def test_samples_hold_what_the_spec_allows(
    samples: Samples | None, shown: list[Any], value: list[Any]
) -> None:
    assert found({"unexpected_rows": [ROW]}, samples=samples)["samples"] == shown
    seen = found({"partial_unexpected_list": ["XXX"], "observed_value": ["XXX"]}, samples=samples)
    assert seen["samples"] == value
    assert seen["observed"] == (value or None), "what was observed is of the column's values"
