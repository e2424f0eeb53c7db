"""The audit: a pipeline's expectations, run by Great Expectations on exactly the slice.

Two looks at the slice, because jobs are what an audit costs. The first asks only which
expectations hold, and takes the counts and aggregates of all of them in one pass (one_pass.py). The second
runs only the expectations that failed, for their observed value and at most three rows. Great
Expectations' own choice of verbosity would fetch sample values for every expectation, held or not. Then the
slice is measured, and compared with the slices published before it (drift.py).

The slice is not cached: it is parquet, of which a job reads the columns it needs, and caching it took
longer than all jobs of an audit together (measured with 100 thousand and 5 million rows).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drawdown.errors import BusyError, DrawdownError
from drawdown.metastore.records import Outcome
from drawdown.quality.drift import judge_history
from drawdown.quality.expectations import build_expectations
from drawdown.quality.findings import MAX_SAMPLES, exception_text, finding, first_line
from drawdown.quality.gx import prefetch
from drawdown.quality.measures import measure
from drawdown.quality.outcome import AuditOutcome
from drawdown.quality.queries import judge_queries
from drawdown.quality.report import describe
from drawdown.spec.history import values_needed

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from pyspark.sql import DataFrame

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
_audited = ""
"""The pipeline whose audit has the lock."""
_LOOK_SECONDS = 0.5

Waits = Callable[[str], AbstractContextManager[Callable[[str], None]]]
"""Given the pipeline whose audit is waited for, a block for the wait. What it gives is called again and again
with the pipeline that is audited then, and raises BusyError when that audit will never end."""


@contextmanager
def _patiently(audited: str) -> Iterator[Callable[[str], None]]:
    yield lambda audited: None


def _no_history(pipeline: str, wanted: Mapping[str, int]) -> list[dict[str, Any]]:
    return []


@dataclass(frozen=True)
class GxAuditor:
    """Judges slices; holds nothing between them, so one serves all pipelines of a process.

    Attributes:
        past: gives the measures of a pipeline's published slices, newest first, that have so many of the
            last values of each measure.
        waits: hears that an audit waits for that of another pipeline.
    """

    past: Callable[[str, Mapping[str, int]], list[dict[str, Any]]] = _no_history
    waits: Waits = _patiently

    def __call__(self, slice: DataFrame, pipeline: Pipeline, rows: int) -> AuditOutcome:
        """The verdict on ``slice``.

        Raises:
            BusyError: whoever is audited before will never end: nothing was judged.

        Args:
            slice: the staged rows as a batch DataFrame with the sink's columns.
            pipeline: its ``quality`` without the rules is what is checked.
            rows: how many rows the slice has, known from staging; no job counts them again.
        """
        if rows and not pipeline.quality.audits:
            return AuditOutcome(
                "pass", text=f"pass: no expectations are declared; {rows:,} rows not examined"
            )
        try:
            return self._judge(slice, pipeline, rows)
        except BusyError:
            raise
        except DrawdownError as error:
            return AuditOutcome("error", text=f"error: {error}")
        except Exception as error:  # noqa: BLE001
            # Great Expectations, Spark and users' SQL meet here, and what they raise has no common
            # base. The rows are staged and safe; a drain that died now would only hide why.
            cause = first_line(str(error)) or "no further text"
            return AuditOutcome("error", text=f"error: audit.crashed: {type(error).__name__}: {cause}")

    def _judge(self, slice: DataFrame, pipeline: Pipeline, rows: int) -> AuditOutcome:
        history = pipeline.quality.history
        past = self.past(pipeline.name, values_needed(history)) if history else []
        if rows == 0:
            # A maximum of no rows fails in Great Expectations. Only time goes on without rows.
            results = judge_history(history, {}, past)
            outcome = _outcome(results)
            if outcome == "pass":
                return AuditOutcome("empty", results, "empty: the slice has no rows")
            if outcome == "fail":
                outcome = "warn"  # there is no row that could be held
            return AuditOutcome(outcome, results, describe(outcome, results, rows))
        results = _examine(slice, pipeline, rows, self.waits) if pipeline.quality.expectations else []
        results += judge_queries(slice, pipeline.quality.queries, pipeline.sample_gate)
        measured = measure(slice, pipeline, rows)
        results += judge_history(history, measured, past)
        outcome = _outcome(results)
        return AuditOutcome(outcome, results, describe(outcome, results, rows), measured)


@contextmanager
def _alone(pipeline: str, waits: Waits) -> Iterator[None]:
    global _audited
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        with waits(_audited) as refuse_if_hopeless:
            while not _ONE_AT_A_TIME.acquire(timeout=_LOOK_SECONDS):
                refuse_if_hopeless(_audited)
    try:
        _audited = pipeline
        yield
    finally:
        _ONE_AT_A_TIME.release()


def _examine(slice: DataFrame, pipeline: Pipeline, rows: int, waits: Waits) -> list[dict[str, Any]]:
    expectations = build_expectations(pipeline)
    from drawdown.quality.one_pass import OnePassEngine
    from drawdown.quality.validation import QuietValidator, look

    with _alone(pipeline.name, waits):
        _use_utc()
        # Of several rows of a key the slice has the latest: fewer than were staged.
        engine = OnePassEngine(slice, None if pipeline.sink.keys else rows)
        validator = QuietValidator(engine, slice)
        seen = look(validator, expectations, _HOLDS_OR_NOT)
        failed = [expectations[at] for at, result in seen.items() if _failed(result)]
        if failed:
            seen |= look(validator, failed, _WITH_SAMPLES)
    return [
        finding(spec, seen[at], pipeline.sample_gate) for at, spec in enumerate(pipeline.quality.expectations)
    ]


def _use_utc() -> None:
    """PySpark hands timestamps over in the process's own time zone, without saying which.

    Some expectations compare them in Python, with times from quality.yaml, which are UTC.
    """
    os.environ["TZ"] = "UTC"
    time.tzset()


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
