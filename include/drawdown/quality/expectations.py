"""Converts quality.yaml's expectations to Great Expectations', and rejects wrong ones by name."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drawdown.errors import SpecError
from drawdown.quality import gx_import
from drawdown.static_checks.places import QUALITY, Places
from drawdown.values.nearest import did_you_mean

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

    from drawdown.spec import Expectation as ExpectationSpec
    from drawdown.spec import Pipeline

POSITION = "position"
"""The ``meta`` key for an expectation's position in quality.yaml: results come back unordered."""

OUTSIDE_THE_SLICE = frozenset(
    {"expect_query_results_to_match_comparison", "expect_table_row_count_to_equal_other_table"}
)
"""Types that compare with another table; an expectation sees only the slice."""

NOT_ON_SPARK = frozenset(
    {
        "expect_column_values_to_be_dateutil_parseable",
        "expect_column_values_to_match_like_pattern",
        "expect_column_values_to_match_like_pattern_list",
        "expect_column_values_to_not_match_like_pattern",
        "expect_column_values_to_not_match_like_pattern_list",
    }
)
"""Types that Great Expectations 1.24.1 has for databases or pandas only."""

RESERVED = frozenset(
    {
        "batch_id",
        "catch_exceptions",
        "description",
        "id",
        "meta",
        "notes",
        "rendered_content",
        "result_format",
        "severity",
        "windows",
    }
)
"""Arguments of every type that control how it runs and reports; the audit sets them. The critical one is
``result_format``: COMPLETE copies every unexpected row into the report.
"""


def validate_expectations(pipeline: Pipeline) -> None:
    """Check every expectation's type and arguments; imports Great Expectations, but needs no Spark.

    Raises:
        SpecError: an unknown type or argument (with the closest match), a missing one, or a wrong value.
    """
    build_expectations(pipeline)


def refuse_unknown_types(pipeline: Pipeline) -> None:
    """Refuse types that Great Expectations has no module for, without importing it (4 s of CPU).

    Raises:
        SpecError: as `build_expectations`.
    """
    places, known = Places(pipeline), _modules()
    for position, spec in enumerate(pipeline.quality.expectations if known else ()):
        _refuse_type(spec.type, known, _place(places, spec, position))


def _modules() -> set[str]:
    """The types that Great Expectations may have: modules have their names; none if it is not installed."""
    found = find_spec("great_expectations")
    folders = found.submodule_search_locations if found is not None else None
    core = (Path(folder) / "expectations" / "core" for folder in folders or ())
    return {file.stem for folder in core for file in folder.glob("*expect*.py")}


def build_expectations(pipeline: Pipeline) -> list[Expectation]:
    """Return the pipeline's expectations as Great Expectations objects, in order.

    Raises:
        SpecError: see :func:`validate_expectations`.
    """
    if not pipeline.quality.expectations:
        return []
    gx_import.load()
    places = Places(pipeline)
    return [
        _build(spec, position, _place(places, spec, position))
        for position, spec in enumerate(pipeline.quality.expectations)
    ]


def _place(places: Places, spec: ExpectationSpec, position: int) -> str:
    return f"{places.key(QUALITY, 'expectations', position)}, expectation {position + 1} ({spec.id})"


def _build(spec: ExpectationSpec, position: int, where: str) -> Expectation:
    from pydantic.v1 import ValidationError

    kind = _kind(spec.type, where)
    arguments = sorted(set(kind.__fields__) - RESERVED)
    _refuse_unknown(spec.kwargs, arguments, spec.type, where)
    _refuse_sql_for_a_column(spec.kwargs, spec.type, where)
    kwargs: dict[str, Any] = copy.deepcopy(spec.kwargs)
    try:
        return kind(**kwargs, meta={POSITION: position})
    except ValidationError as error:
        raise SpecError(
            "quality.bad-argument",
            f"{spec.type}: {_first_complaint(error)}",
            where=where,
            do=f"it takes {', '.join(arguments)}; see https://greatexpectations.io/expectations/{spec.type}",
        ) from error


def _kind(name: str, where: str) -> type[Expectation]:
    from great_expectations.expectations.registry import (
        get_expectation_impl,
        list_registered_expectation_implementations,
    )

    _refuse_type(name, list_registered_expectation_implementations(), where)
    kind: type[Expectation] = get_expectation_impl(name)
    return kind


def _refuse_type(name: str, types: Iterable[str], where: str) -> None:
    known = sorted({*types} - OUTSIDE_THE_SLICE - NOT_ON_SPARK)
    if name in OUTSIDE_THE_SLICE:
        raise SpecError(
            "quality.outside-the-slice",
            f"{name} compares with another table, but an expectation sees only the slice",
            where=where,
            do="write it under `queries:`: SQL over the slice and the static sources",
        )
    if name in NOT_ON_SPARK:
        raise SpecError(
            "quality.not-on-spark",
            f"Great Expectations cannot run {name} on Spark",
            where=where,
            do="use a regular expression instead: " + ", ".join(sorted(n for n in known if "_regex" in n)),
        )
    if name not in known:
        raise SpecError(
            "quality.unknown-expectation",
            f"there is no expectation type {name}",
            where=where,
            do=did_you_mean(name, known),
        )


def _refuse_sql_for_a_column(kwargs: Mapping[str, Any], name: str, where: str) -> None:
    """Refuse column names that are not plain: Great Expectations pastes some of them into SQL."""
    for key, value in kwargs.items():
        columns = value if isinstance(value, list) else [value]
        if key.startswith("column") and any(c in str(column) for column in columns for c in "()`"):
            raise SpecError(
                "quality.bad-argument",
                f"{name}: {key} is not a column name: {value}",
                where=where,
                do="add a column with a plain name to the transform's output and use that",
            )


def _refuse_unknown(kwargs: Iterable[str], arguments: list[str], name: str, where: str) -> None:
    for key in kwargs:
        if key in RESERVED:
            raise SpecError(
                "quality.reserved-argument",
                f"{name}: {key} is set by the audit",
                where=where,
                do="remove it from kwargs; `severity` (fail | warn) and `name` go beside `kwargs`",
            )
        if key not in arguments:
            raise SpecError(
                "quality.unknown-argument",
                f"{name} has no argument {key}",
                where=where,
                do=did_you_mean(key, arguments),
            )


def _first_complaint(error: Any) -> str:
    """Return one line of a pydantic (v1) error: the argument and what is wrong."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "__root__")
    return f"{place}: {first['msg']}" if place else str(first["msg"])
