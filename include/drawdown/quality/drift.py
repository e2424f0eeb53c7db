"""Judges `history:` of quality.yaml with Great Expectations, on a small pandas frame of past measures.

The frame has one row per earlier slice, oldest first, then this one; one column per measure. With m the
median of the last `runs` earlier slices, this slice's value must be within

    ratio: [low, high]     low * m  to  high * m
    difference: d          m - d    to  m + d

and a greatest time (of this slice or an earlier one) not older than `max_age`. Unlike a mean, a median is not
moved by one odd slice. With fewer slices than `runs` nothing is judged yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from drawdown.quality import gx_import
from drawdown.quality.expectations import POSITION
from drawdown.quality.gx_results import exception_text
from drawdown.quality.json_values import plain
from drawdown.quality.measures import past_values
from drawdown.spec.history import HistoryExpectation

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

_THIS = "this_slice"


def judge_history(
    history: Sequence[HistoryExpectation], measured: dict[str, Any], past: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return one entry per expectation, as :class:`~drawdown.quality.outcome.AuditOutcome` describes.

    ``type`` is the measure, and ``kwargs`` what it was compared with: the keys of quality.yaml and
    ``median``, ``min_value``, ``max_value``. An entry with the key ``unjudged`` (a text) counts as passed.

    Args:
        measured: measures of this slice; {} when it has no rows: then only freshness is judged.
        past: measures of earlier published slices, newest first.
    """
    entries: dict[int, dict[str, Any]] = {}
    bounds: dict[int, tuple[float | None, float | None]] = {}
    for at, one in enumerate(history):
        entries[at] = _entry(one)
        values = past_values(past, one.key)
        if one.max_age is not None:
            if not values and measured.get(one.key) is None:
                entries[at]["unjudged"] = "no slice has had a timestamp yet"
            else:
                bounds[at] = (None, one.max_age.delta.total_seconds())
        elif not measured:
            entries[at]["unjudged"] = "the slice has no rows"
        elif len(values) < one.runs:
            entries[at]["unjudged"] = f"{len(values)} of {one.runs} published slices needed"
        else:
            median = _median(values[: one.runs])
            low, high = bounds[at] = _around(one, median)
            entries[at]["kwargs"] |= {"median": median, "min_value": low, "max_value": high}
    for at, result in _results(history, bounds, measured, past).items():
        observed = plain(result.result.get("observed_value"))
        if history[at].measure == "freshness" and isinstance(observed, int | float):
            observed = str(timedelta(seconds=round(observed)))
        entries[at] |= {
            "success": bool(result.success),
            "observed": observed,
            "exception": exception_text(result),
        }
    return list(entries.values())


def _entry(one: HistoryExpectation) -> dict[str, Any]:
    asked = one.model_dump(
        mode="json", include={"column", "ratio", "difference", "max_age"}, exclude_none=True
    )
    if one.measure != "freshness":
        asked["runs"] = one.runs
    return {
        "name": one.id,
        "type": one.measure,
        "kwargs": asked,
        "severity": one.severity,
        "success": True,
        "observed": None,
        "unexpected_count": None,
        "unexpected_percent": None,
        "samples": [],
        "exception": None,
    }


def _around(one: HistoryExpectation, median: float) -> tuple[float, float]:
    if one.difference is not None:
        return median - one.difference, median + one.difference
    assert one.ratio is not None
    # A mean may be negative.
    low, high = sorted(ratio * median for ratio in one.ratio)
    return low, high


def _median(values: Sequence[float]) -> float:
    import pandas as pd

    return float(pd.Series(values).median())


def _results(
    history: Sequence[HistoryExpectation],
    bounds: dict[int, tuple[float | None, float | None]],
    measured: dict[str, Any],
    past: Sequence[dict[str, Any]],
) -> dict[int, Any]:
    """Return Great Expectations' results by position, for the measures with bounds."""
    if not bounds:
        return {}
    gx_import.load()
    import pandas as pd
    from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine

    from drawdown.quality.gx_validation import QuietValidator, look

    slices = [*reversed(past), measured]
    frame = pd.DataFrame({_THIS: [False] * len(past) + [True]})
    for at in bounds:
        values = [_number(slice_.get(history[at].key)) for slice_ in slices]
        if history[at].measure == "freshness":
            now = datetime.now(UTC).timestamp()
            values = [None if value is None else now - value / 1_000_000 for value in values]
        frame[str(at)] = pd.Series(values, dtype="float64")
    asked = [_expectation(at, history[at], *bounds[at]) for at in bounds]
    return look(QuietValidator(PandasExecutionEngine(), frame), asked, {"result_format": "BASIC"})


def _expectation(at: int, one: HistoryExpectation, low: float | None, high: float | None) -> Expectation:
    from great_expectations.expectations.core.expect_column_min_to_be_between import (
        ExpectColumnMinToBeBetween,
    )
    from great_expectations.expectations.row_conditions import Column

    # For freshness the latest time of all slices; for other measures this slice's value. None fails.
    here = None if one.measure == "freshness" else Column(_THIS) == True  # noqa: E712
    return ExpectColumnMinToBeBetween(
        column=str(at), min_value=low, max_value=high, row_condition=here, meta={POSITION: at}
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None
