"""The arguments that an expectation may be given: by type the names, by name the shape of the value.

Great Expectations has more of both. Some reach out of the slice: a dictionary in the place of a value is
looked up in its stores (``$PARAMETER``), a JSON schema is fetched from where its ``$ref`` points, and a
condition can be SQL that is passed through. So a type or argument of a newer version is refused until
somebody has looked at it. What passes here Great Expectations still checks for being right.
Source: the fields of the classes of Great Expectations 1.24.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from drawdown.errors import SpecError
from drawdown.quality.json_schemas import why_refused
from drawdown.values.nearest import did_you_mean

_MOST_VALUES = 10_000
_LONGEST_TEXT = 10_000

_OF_ROWS = ("row_condition", "condition_parser")
_MAP = ("mostly", *_OF_ROWS)
_COLUMN = ("column", *_OF_ROWS)
_VALUES = ("column", *_MAP)
_PAIR = ("column_A", "column_B", "ignore_row_if", *_MAP)
_SEVERAL = ("column_list", "ignore_row_if", *_MAP)
_WITHIN = ("min_value", "max_value")
_BOUNDS = (*_WITHIN, "strict_min", "strict_max")

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    **{f"expect_column_distinct_values_to_{what}_set": (*_COLUMN, "value_set")
       for what in ("be_in", "contain", "equal")},
    "expect_column_kl_divergence_to_be_less_than": (
        *_COLUMN, *_WITHIN, "bucketize_data", "internal_weight_holdout", "partition_object",
        "tail_weight_holdout", "threshold",
    ),
    **{f"expect_column_{measure}_to_be_between": (*_COLUMN, *_BOUNDS) for measure in (
        "max", "mean", "median", "min", "proportion_of_non_null_values", "proportion_of_unique_values",
        "stdev", "sum", "unique_value_count",
    )},
    "expect_column_most_common_value_to_be_in_set": (*_COLUMN, "value_set", "ties_okay"),
    "expect_column_pair_values_a_to_be_greater_than_b": (*_PAIR, "or_equal"),
    "expect_column_pair_values_to_be_equal": _PAIR,
    "expect_column_pair_values_to_be_in_set": (*_PAIR, "value_pairs_set"),
    "expect_column_quantile_values_to_be_between": (*_COLUMN, "allow_relative_error", "quantile_ranges"),
    "expect_column_to_exist": ("column", "column_index"),
    "expect_column_type_to_be": ("column", "type_"),
    "expect_column_value_lengths_to_be_between": (*_VALUES, *_BOUNDS),
    "expect_column_value_lengths_to_equal": (*_VALUES, "value"),
    "expect_column_value_z_scores_to_be_less_than": (*_VALUES, "double_sided", "threshold"),
    "expect_column_values_to_be_between": (*_VALUES, *_BOUNDS),
    **{f"expect_column_values_to_be_{way}": (*_VALUES, "strictly") for way in ("decreasing", "increasing")},
    **{f"expect_column_values_to_{what}be_in_set": (*_VALUES, "value_set") for what in ("", "not_")},
    "expect_column_values_to_be_in_type_list": (*_VALUES, "type_list"),
    **{f"expect_column_values_to_{what}": _VALUES
       for what in ("be_json_parseable", "be_null", "be_unique", "not_be_null")},
    "expect_column_values_to_be_of_type": (*_VALUES, "type_"),
    "expect_column_values_to_match_json_schema": (*_VALUES, "json_schema"),
    "expect_column_values_to_match_regex": (*_VALUES, "regex"),
    "expect_column_values_to_match_regex_list": (*_VALUES, "regex_list", "match_on"),
    "expect_column_values_to_match_strftime_format": (*_VALUES, "strftime_format"),
    "expect_column_values_to_not_be_outliers": (*_VALUES, "method", "multiplier"),
    "expect_column_values_to_not_match_regex": (*_VALUES, "regex"),
    "expect_column_values_to_not_match_regex_list": (*_VALUES, "regex_list"),
    "expect_compound_columns_to_be_unique": _SEVERAL,
    "expect_multicolumn_sum_to_equal": (*_SEVERAL, "sum_total"),
    "expect_multicolumn_values_to_be_equal": _SEVERAL,
    "expect_select_column_values_to_be_unique_within_record": _SEVERAL,
    "expect_table_column_count_to_be_between": _WITHIN,
    "expect_table_column_count_to_equal": ("value",),
    "expect_table_columns_to_match_ordered_list": ("column_list",),
    "expect_table_columns_to_match_set": ("column_set", "exact_match"),
    "expect_table_row_count_to_be_between": (*_OF_ROWS, *_BOUNDS),
    "expect_table_row_count_to_equal": (*_OF_ROWS, "value"),
}  # fmt: skip
"""By type the arguments that say what is expected, of which rows and columns."""


def refuse_arguments(type: str, kwargs: Mapping[str, Any], where: str) -> None:
    """Refuse an argument that is not in ARGUMENTS, or whose value is of another shape.

    Raises:
        SpecError: ``quality.unknown-argument`` with the nearest name, ``quality.bad-argument``.
    """
    known = ARGUMENTS[type]
    for name, value in kwargs.items():
        if name not in known:
            raise SpecError(
                "quality.unknown-argument",
                f"{type} has no argument {name}",
                where=where,
                do=did_you_mean(name, known),
            )
        if why := _wrong(type, name, value):
            raise SpecError(
                "quality.bad-argument",
                f"{type}: {name} {why}",
                where=where,
                do=f"it takes {', '.join(sorted(known))}; see https://greatexpectations.io/expectations/{type}",
            )


def _wrong(type: str, name: str, value: Any) -> str | None:
    if type == "expect_multicolumn_sum_to_equal" and name == "column_list":
        return _not_plain_columns(value) or _not_columns(value)
    if name.startswith("column"):
        return _not_columns(value)
    return _SHAPES.get(name, _not_values)(value)


def _not_columns(value: Any) -> str | None:
    """Great Expectations writes the names of some columns into conditions."""
    names = value if isinstance(value, list) else [value]
    if any(isinstance(each, dict | list) for each in names):
        return "is no column name"
    if any(mark in str(each) for each in names for mark in "()`"):
        return (
            f"is not a column name: {value}; add a column with a plain name to the transform's output and use"
            " that"
        )
    return None


def _not_plain_columns(value: Any) -> str | None:
    """Great Expectations joins these names with `+` and has Spark parse the sum."""
    odd = [each for each in value if not re.fullmatch(r"\w+", str(each))] if isinstance(value, list) else []
    return f"takes names of letters, digits and _ only: {odd[0]}" if odd else None


def _not_values(value: Any) -> str | None:
    """A value, or a list of values or of pairs of them."""
    return None if _is_value(value) or _is_list_of(_is_value_or_pair, value) else "must be a value or a list"


def _is_value(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_TEXT
    return value is None or isinstance(value, int | float | date)


def _is_list_of(fits: Callable[[Any], bool], value: Any) -> bool:
    return isinstance(value, list) and len(value) <= _MOST_VALUES and all(map(fits, value))


def _is_value_or_pair(value: Any) -> bool:
    return _is_value(value) or (isinstance(value, list) and len(value) <= 2 and all(map(_is_value, value)))


def _not_lists_under(keys: Sequence[str]) -> Callable[[Any], str | None]:
    def wrong(value: Any) -> str | None:
        if isinstance(value, dict) and all(
            key in keys and _is_list_of(_is_value_or_pair, each) for key, each in value.items()
        ):
            return None
        return f"must have lists under {' and '.join(keys)}"

    return wrong


_CONDITION_KEYS: Mapping[str, frozenset[str]] = {
    "comparison": frozenset({"type", "column", "operator", "parameter"}),
    "nullity": frozenset({"type", "column", "is_null"}),
    "and": frozenset({"type", "conditions"}),
    "or": frozenset({"type", "conditions"}),
}
"""The structures that a ``row_condition`` may have instead of a text: those that hold no SQL."""


def _not_a_condition(value: Any, depth: int = 0) -> str | None:
    if isinstance(value, str) and depth == 0:
        return None if len(value) <= _LONGEST_TEXT else "is too long"
    keys = _CONDITION_KEYS.get(str(value.get("type"))) if isinstance(value, dict) and depth < 5 else None
    if keys is None or not value.keys() <= keys:
        return f"must be a text, or a condition of type {', '.join(_CONDITION_KEYS)}"
    if "conditions" in keys:
        parts = value.get("conditions")
        parts = parts if isinstance(parts, list) and len(parts) <= _MOST_VALUES else [None]
        return next((why for each in parts if (why := _not_a_condition(each, depth + 1))), None)
    column = value.get("column")
    column = column.get("name") if isinstance(column, dict) and column.keys() == {"name"} else column
    return _not_columns(column) or _not_values(value.get("parameter"))


def _no_parser(value: Any) -> str | None:
    parsers = ("spark", "great_expectations", "great_expectations__experimental__")
    return None if value in parsers else f"must be {' or '.join(parsers[:2])}"


def _no_type(value: Any) -> str | None:
    """Great Expectations looks these names up in the module of Spark's types."""
    names = value if isinstance(value, list) else [value]
    fit = all(isinstance(each, str) and re.fullmatch(r"[A-Za-z]\w{0,99}", each) for each in names)
    return None if fit else "takes names of Spark's types, such as IntegerType"


_SHAPES: Mapping[str, Callable[[Any], str | None]] = {
    "condition_parser": _no_parser,
    "json_schema": why_refused,
    "partition_object": _not_lists_under(("bins", "tail_weights", "values", "weights")),
    "quantile_ranges": _not_lists_under(("quantiles", "value_ranges")),
    "row_condition": _not_a_condition,
    "type_": _no_type,
    "type_list": _no_type,
}
