"""Converts one Great Expectations result to one entry of a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drawdown.quality.json_values import plain

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult

    from drawdown.spec import Expectation as ExpectationSpec
    from drawdown.spec.samples import SampleGate

MAX_SAMPLES = 3
MAX_EXCEPTION_CHARACTERS = 500


def finding(spec: ExpectationSpec, result: ExpectationValidationResult, gate: SampleGate) -> dict[str, Any]:
    """Return the entry that :class:`~drawdown.quality.outcome.AuditOutcome` describes, JSON-serialisable."""
    found = result.result or {}
    judged = spec.columns
    shown = gate.shows_all(judged, judged)
    return {
        "name": spec.id,
        "type": spec.type,
        "kwargs": plain(spec.kwargs, max_items=None),
        "severity": spec.severity,
        "success": bool(result.success),
        "observed": plain(found.get("observed_value")) if shown else None,
        "unexpected_count": plain(found.get("unexpected_count")),
        "unexpected_percent": plain(found.get("unexpected_percent")),
        "samples": _samples(found, gate, judged),
        "exception": exception_text(result),
    }


def _samples(found: dict[str, Any], gate: SampleGate, judged: list[str]) -> list[Any]:
    """Return sample rows if the expectation judges rows, else single values; only what may be shown."""
    rows = found.get("unexpected_rows")
    if rows is None:
        rows = found.get("partial_unexpected_list") or []
    shown = (_shown(plain(row), gate, judged) for row in list(rows)[:MAX_SAMPLES])
    return [row for row in shown if row not in (None, {})]


def _shown(sample: Any, gate: SampleGate, judged: list[str]) -> Any:
    if isinstance(sample, dict):
        return gate.row(sample, judged)
    # A single value comes from the judged column.
    return sample if judged and gate.shows_all(judged, judged) else None


def exception_text(result: ExpectationValidationResult) -> str | None:
    """Return the first line of the exception raised while evaluating; None if there was none."""
    info = result.exception_info or {}
    # One report, or one per failed metric.
    reports = [info] if "raised_exception" in info else list(info.values())
    for report in reports:
        if report.get("raised_exception", True):
            return first_line(str(report.get("exception_message") or "")) or "an exception without a text"
    return None


def first_line(text: str) -> str:
    """Return the first informative line, cut to a readable length."""
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    # Py4J puts the call's name before the JVM's exception.
    telling = [line for line in lines if not line.startswith("An error occurred while calling o")]
    return (telling or lines or [""])[0][:MAX_EXCEPTION_CHARACTERS]
