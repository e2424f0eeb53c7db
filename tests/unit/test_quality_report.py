"""The text of a verdict says what did not hold, what was expected and what was there."""

from __future__ import annotations

from typing import Any

from drawdown.quality.verdict_text import describe
from tests.support.quality import finding


def entry(**changes: Any) -> dict[str, Any]:
    return finding(name="expect_column_values_to_be_in_set(origin)") | changes


def test_a_pass_is_one_line() -> None:
    assert (
        describe("pass", [entry(), entry()], 1234) == "pass: 2 of 2 expectations passed (1,234 rows checked)"
    )


def test_a_failure_names_the_expectation_the_column_the_share_and_the_rows() -> None:
    failed = entry(
        name="known_origin",
        success=False,
        unexpected_count=1200,
        unexpected_percent=12.5,
        samples=[{"origin": "XXX", "dep_delay": 3}],
    )
    assert describe("fail", [entry(), failed], 9600).splitlines() == [
        "fail: 1 of 2 expectations failed (9,600 rows checked)",
        "- known_origin: expect_column_values_to_be_in_set on origin: failed",
        '    expected: {"value_set":["EWR","JFK"]}',
        "    unexpected: 1,200 (12.5 % of the values that are not null)",
        '    sample: {"origin":"XXX","dep_delay":3}',
    ]


def test_a_warning_says_that_it_is_one_and_what_was_observed() -> None:
    warned = entry(
        name="expect_column_mean_to_be_between(dep_delay)",
        type="expect_column_mean_to_be_between",
        kwargs={"column": "dep_delay", "max_value": 12},
        severity="warn",
        success=False,
        observed=15.25,
    )
    assert describe("warn", [warned], 10).splitlines()[1:] == [
        "- expect_column_mean_to_be_between on dep_delay: failed, a warning",
        '    expected: {"max_value":12}',
        "    observed: 15.25",
    ]


def test_an_expectation_that_could_not_be_run_is_an_error_whatever_its_severity() -> None:
    broken = entry(severity="warn", success=False, exception="no column named origin")
    text = describe("error", [broken], 10)
    assert "on origin: error, not judged" in text
    assert "raised: no column named origin" in text


def test_all_columns_of_a_comparison_are_named() -> None:
    pair = entry(kwargs={"column_A": "arrived", "column_B": "departed", "or_equal": True}, success=False)
    compound = entry(kwargs={"column_list": ["carrier", "flight"]}, success=False)
    text = describe("fail", [pair, compound], 10)
    assert "on arrived, departed: failed" in text
    assert "on carrier, flight: failed" in text
    assert 'expected: {"or_equal":true}' in text


def test_a_very_wide_sample_row_is_cut() -> None:
    wide = entry(success=False, samples=[{f"column_{i}": i for i in range(1000)}])
    assert max(len(line) for line in describe("fail", [wide], 1).splitlines()) < 600
