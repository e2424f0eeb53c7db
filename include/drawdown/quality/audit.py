"""The audit: a pipeline's expectations, run by Great Expectations on exactly the slice.

Two looks at the slice, because jobs are what an audit costs. The first asks only which
expectations hold, and takes the counts and aggregates of all of them in one pass (one_pass.py). The second
runs only the expectations that failed, for their observed value and at most three rows. Great
Expectations' own choice of verbosity would fetch sample values for every expectation, held or not.

The slice is not cached: it is parquet, of which a job reads the columns it needs, and caching it took
longer than all jobs of an audit together (measured with 100 thousand and 5 million rows).
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

from drawdown.errors import DrawdownError
from drawdown.metastore.records import Outcome
from drawdown.quality.expectations import POSITION, build_expectations
from drawdown.quality.findings import MAX_SAMPLES, exception_text, finding, first_line
from drawdown.quality.gx import prefetch
from drawdown.quality.outcome import AuditOutcome
from drawdown.quality.report import describe

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.expectations.expectation import Expectation
    from pyspark.sql import DataFrame

    from drawdown.quality.one_pass import SliceValidator
    from drawdown.spec import Pipeline

__all__ = ["GxAuditor", "prefetch"]

_HOLDS_OR_NOT = {"result_format": "BOOLEAN_ONLY"}
# Never COMPLETE: it copies every unexpected row into the result.
_WITH_SAMPLES = {
    "result_format": "BASIC",
    "partial_unexpected_count": MAX_SAMPLES,
    "include_unexpected_rows": True,
}

# Great Expectations has registries of the whole process, and a group drains pipelines in several threads.
_ONE_AT_A_TIME = threading.Lock()


class GxAuditor:
    """Judges slices; holds nothing between them, so one serves all pipelines of a process."""

    def __call__(self, slice: DataFrame, pipeline: Pipeline, rows: int) -> AuditOutcome:
        """The verdict on ``slice``; never raises.

        Args:
            slice: the staged rows as a batch DataFrame with the sink's columns.
            pipeline: its ``quality.expectations`` are what is checked.
            rows: how many rows the slice has, known from staging; no job counts them again.
        """
        if rows == 0:
            # A maximum of no rows fails in Great Expectations; there is nothing to judge.
            return AuditOutcome("empty", text="empty: the slice has no rows")
        if not pipeline.quality.expectations:
            return AuditOutcome(
                "pass", text=f"pass: no expectations are declared; {rows:,} rows not examined"
            )
        try:
            results = _examine(slice, pipeline, rows)
        except DrawdownError as error:
            return AuditOutcome("error", text=f"error: {error}")
        except Exception as error:  # noqa: BLE001
            # Great Expectations, Spark and users' SQL meet here, and what they raise has no common
            # base. The rows are staged and safe; a drain that died now would only hide why.
            cause = first_line(str(error)) or "no further text"
            return AuditOutcome("error", text=f"error: audit.crashed: {type(error).__name__}: {cause}")
        outcome = _outcome(results)
        return AuditOutcome(outcome, results, describe(outcome, results, rows))


def _examine(slice: DataFrame, pipeline: Pipeline, rows: int) -> list[dict[str, Any]]:
    expectations = build_expectations(pipeline)
    from drawdown.quality.one_pass import SliceValidator

    with _ONE_AT_A_TIME:
        _use_utc()
        # Of several rows of a key the slice has the latest: fewer than were staged.
        validator = SliceValidator(slice, None if pipeline.sink.keys else rows)
        seen = _look(validator, expectations, _HOLDS_OR_NOT)
        failed = [expectations[at] for at, result in seen.items() if _failed(result)]
        if failed:
            seen |= _look(validator, failed, _WITH_SAMPLES)
    return [finding(spec, seen[at]) for at, spec in enumerate(pipeline.quality.expectations)]


def _use_utc() -> None:
    """PySpark hands timestamps over in the process's own time zone, without saying which.

    Some expectations compare them in Python, with times from quality.yaml, which are UTC.
    """
    os.environ["TZ"] = "UTC"
    time.tzset()


def _look(
    validator: SliceValidator, expectations: list[Expectation], result_format: dict[str, Any]
) -> dict[int, ExpectationValidationResult]:
    """One validation run; results by the expectation's position in quality.yaml."""
    asked = validator.process_expectations_for_validation([one.configuration for one in expectations])
    seen = {}
    for result in validator.graph_validate(asked, {"result_format": dict(result_format)}):
        if result.expectation_config is None:
            raise LookupError("Great Expectations returned a result without its expectation")
        seen[result.expectation_config.meta[POSITION]] = result
    return seen


def _failed(result: ExpectationValidationResult) -> bool:
    return not result.success and exception_text(result) is None


def _outcome(results: list[dict[str, Any]]) -> Outcome:
    """error before fail before warn: an audit that could not see everything has not judged the slice.

    Great Expectations knows severities too, but they do not change its success, and a missing
    column would read as a mere warning.
    """
    if any(entry["exception"] for entry in results):
        return "error"
    failed = {entry["severity"] for entry in results if not entry["success"]}
    if "fail" in failed:
        return "fail"
    return "warn" if failed else "pass"
