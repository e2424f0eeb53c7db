"""Expectations that are right beyond doubt: the types in daily use with arguments of the plainest kind.

Great Expectations checks types and arguments itself, and its import takes 4 s of CPU. `drawdown validate`
imports it for what is not in this table; a run always does. Source: the fields of the classes of Great
Expectations 1.24.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from drawdown.spec import Expectation

Fits = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _column(value: Any) -> bool:
    return _text(value) and not any(mark in value for mark in "()`")


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _share(value: Any) -> bool:
    return _number(value) and 0 <= value <= 1


def _values(value: Any) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(each, str | int | float) for each in value)
    )


def _columns(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(map(_column, value))
        and len({*value}) == len(value)
    )


def _spark(value: Any) -> bool:
    return bool(value == "spark")


_OF_ROWS: Mapping[str, Fits] = {"mostly": _share, "row_condition": _text, "condition_parser": _spark}
_COLUMN: Mapping[str, Fits] = {"column": _column}
_BOUNDS: Mapping[str, Fits] = {
    "min_value": _number, "max_value": _number, "strict_min": _flag, "strict_max": _flag
}  # fmt: skip
_WHOLE_BOUNDS: Mapping[str, Fits] = {"min_value": _whole, "max_value": _whole}
# By type the arguments that it needs, and those that it may have.
EVERYDAY: Mapping[str, tuple[Mapping[str, Fits], Mapping[str, Fits]]] = {
    **{
        f"expect_column_values_to_{what}": (_COLUMN, _OF_ROWS)
        for what in ("be_null", "be_unique", "not_be_null")
    },
    **{
        f"expect_column_values_to_{what}be_in_set": ({**_COLUMN, "value_set": _values}, _OF_ROWS)
        for what in ("", "not_")
    },
    **{
        f"expect_column_values_to_{what}match_regex": ({**_COLUMN, "regex": _text}, _OF_ROWS)
        for what in ("", "not_")
    },
    "expect_column_values_to_be_between": (_COLUMN, {**_OF_ROWS, **_BOUNDS}),
    "expect_column_value_lengths_to_be_between": (_COLUMN, {**_OF_ROWS, **_WHOLE_BOUNDS}),
    **{
        f"expect_column_{measure}_to_be_between": (_COLUMN, _BOUNDS)
        for measure in ("max", "mean", "median", "min", "stdev", "sum")
    },
    "expect_column_unique_value_count_to_be_between": (_COLUMN, _WHOLE_BOUNDS),
    "expect_compound_columns_to_be_unique": ({"column_list": _columns}, {}),
    "expect_table_row_count_to_be_between": ({}, _WHOLE_BOUNDS),
    "expect_table_row_count_to_equal": ({"value": _whole}, {}),
    "expect_table_column_count_to_equal": ({"value": _whole}, {}),
}


def is_everyday(expectation: Expectation) -> bool:
    """Whether Great Expectations takes it for sure; False says nothing."""
    needed, allowed = EVERYDAY.get(expectation.type, (None, None))
    kwargs = expectation.kwargs
    if needed is None or allowed is None or not needed.keys() <= kwargs.keys():
        return False
    known = {**needed, **allowed}
    if not all(name in known and known[name](value) for name, value in kwargs.items()):
        return False
    return _bounds_make_sense(kwargs, "min_value" in allowed) and _condition_is_whole(kwargs)


def _bounds_make_sense(kwargs: Mapping[str, Any], bounded: bool) -> bool:
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    if not bounded:
        return True
    return low <= high if low is not None and high is not None else low is not None or high is not None


def _condition_is_whole(kwargs: Mapping[str, Any]) -> bool:
    return ("row_condition" in kwargs) == ("condition_parser" in kwargs)
