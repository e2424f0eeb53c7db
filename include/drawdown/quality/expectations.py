"""Converts quality.yaml's expectations to Great Expectations', and rejects wrong ones by name."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from drawdown.errors import SpecError
from drawdown.quality import gx_import
from drawdown.quality.expectation_arguments import ARGUMENTS, refuse_arguments
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
    refuse_unknown(pipeline)
    build_expectations(pipeline)


def refuse_unknown(pipeline: Pipeline) -> None:
    """Refuse types and arguments that are not on the lists, without Great Expectations (4 s of CPU).

    Raises:
        SpecError: ``quality.*``, naming the closest known type or argument.
    """
    places = Places(pipeline)
    for position, spec in enumerate(pipeline.quality.expectations):
        _refuse(spec, _place(places, spec, position))


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
    from great_expectations.expectations.registry import get_expectation_impl
    from pydantic.v1 import ValidationError

    _refuse(spec, where)
    kind: type[Expectation] = get_expectation_impl(spec.type)
    kwargs: dict[str, Any] = copy.deepcopy(spec.kwargs)
    try:
        return kind(**kwargs, meta={POSITION: position})
    except ValidationError as error:
        raise SpecError(
            "quality.bad-argument",
            f"{spec.type}: {_first_complaint(error)}",
            where=where,
            do=f"it takes {', '.join(sorted(ARGUMENTS[spec.type]))}; see https://greatexpectations.io/expectations/{spec.type}",
        ) from error


def _refuse(spec: ExpectationSpec, where: str) -> None:
    """Refuse a type and arguments that are not on the lists."""
    _refuse_type(spec.type, where)
    for key in spec.kwargs:
        if key in RESERVED:
            raise SpecError(
                "quality.reserved-argument",
                f"{spec.type}: {key} is set by the audit",
                where=where,
                do="remove it from kwargs; `severity` (fail | warn) and `name` go beside `kwargs`",
            )
    refuse_arguments(spec.type, spec.kwargs, where)


def _refuse_type(name: str, where: str) -> None:
    known = sorted(ARGUMENTS)
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


def _first_complaint(error: Any) -> str:
    """Return one line of a pydantic (v1) error: the argument and what is wrong."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "__root__")
    return f"{place}: {first['msg']}" if place else str(first["msg"])
