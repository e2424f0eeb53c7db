"""The audit: a pipeline's expectations, run by Great Expectations on exactly the slice.

The slice is read at most twice, because Spark jobs dominate the cost of an audit. The first pass asks only
which expectations hold and computes all their counts and aggregates together (one_pass.py). The second runs
only the expectations that failed, for their observed value and at most three rows: Great Expectations' own
result formats would fetch samples for every expectation, failed or not. Then the slice is measured and
compared with earlier published slices (drift.py).

The slice is not cached: it is Parquet, so each job reads only the columns it needs, and caching took longer
than all jobs of an audit together (measured with 100 thousand and 5 million rows).
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
from drawdown.quality.gx_import import prefetch
from drawdown.quality.gx_results import MAX_SAMPLES, exception_text, finding, first_line
from drawdown.quality.measures import measure
from drawdown.quality.outcome import AuditOutcome
from drawdown.quality.queries import judge_queries
from drawdown.quality.verdict_text import describe
from drawdown.spec.history import values_needed
from drawdown.values.text import counted

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

# Great Expectations' registries are process-wide, and a group drains pipelines in several threads.
_ONE_AT_A_TIME = threading.Lock()
_audited = ""
"""The pipeline whose audit holds the lock."""
_LOOK_SECONDS = 0.5

Waits = Callable[[str], AbstractContextManager[Callable[[str], None]]]
"""Opens a block for a wait on another pipeline's audit. It yields a function that is called repeatedly with
the pipeline being audited, and raises BusyError if that audit will never end."""


@contextmanager
def _patiently(audited: str) -> Iterator[Callable[[str], None]]:
    yield lambda audited: None


def _no_history(pipeline: str, wanted: Mapping[str, int]) -> list[dict[str, Any]]:
    return []


@dataclass(frozen=True)
class GxAuditor:
    """Audits slices. Stateless, so one instance serves all pipelines of a process.

    Attributes:
        past: returns the measures of a pipeline's published slices, newest first, enough for the given number
            of values of each measure.
        waits: called when an audit has to wait for another pipeline's.
    """

    past: Callable[[str, Mapping[str, int]], list[dict[str, Any]]] = _no_history
    waits: Waits = _patiently

    def __call__(self, slice: DataFrame, pipeline: Pipeline, rows: int) -> AuditOutcome:
        """Audit ``slice``.

        Raises:
            BusyError: the audit before this one will never end; nothing was judged.

        Args:
            slice: the staged rows as a batch DataFrame with the sink's columns.
            pipeline: everything in its ``quality`` except the row rules is checked.
            rows: how many rows the slice has, known from staging, so that no job counts them again.
        """
        if rows and not pipeline.quality.audits:
            return AuditOutcome(
                "pass", text=f"pass: no expectations are declared; {counted(rows, 'row')} not examined"
            )
        try:
            return self._judge(slice, pipeline, rows)
        except BusyError:
            raise
        except DrawdownError as error:
            return AuditOutcome("error", text=f"error: {error}")
        except Exception as error:  # noqa: BLE001
            # Great Expectations, Spark and users' SQL meet here, and their exceptions have no common base
            # class. The rows are staged and safe; letting the drain die here would only hide the reason.
            cause = first_line(str(error)) or "no further text"
            return AuditOutcome("error", text=f"error: audit.crashed: {type(error).__name__}: {cause}")

    def _judge(self, slice: DataFrame, pipeline: Pipeline, rows: int) -> AuditOutcome:
        history = pipeline.quality.history
        past = self.past(pipeline.name, values_needed(history)) if history else []
        if rows == 0:
            # Great Expectations fails on the maximum of no rows. Only freshness can be judged without rows.
            results = judge_history(history, {}, past)
            outcome = _outcome(results)
            if outcome == "pass":
                return AuditOutcome("empty", results, "empty: the slice has no rows")
            if outcome == "fail":
                outcome = "warn"  # without rows there is nothing to hold
            return AuditOutcome(outcome, results, describe(outcome, results, rows))
        results = _examine(slice, pipeline, rows, self.waits) if pipeline.quality.expectations else []
        results += judge_queries(slice, pipeline)
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
    from drawdown.quality.gx_validation import QuietValidator, look
    from drawdown.quality.one_pass import OnePassEngine

    with _alone(pipeline.name, waits):
        _use_utc()
        # The slice keeps only the latest row per key, so it can have fewer rows than were staged.
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
    """Set the process time zone to UTC: PySpark returns timestamps without a zone, in the process's own.

    Some expectations compare them in Python, with times from quality.yaml, which are UTC.
    """
    os.environ["TZ"] = "UTC"
    time.tzset()


def _failed(result: ExpectationValidationResult) -> bool:
    return not result.success and exception_text(result) is None


def _outcome(results: list[dict[str, Any]]) -> Outcome:
    """Return the worst outcome: error, then fail, then warn. An audit with errors has not judged the slice.

    Great Expectations knows severities too, but they do not change its success, and a missing
    column would read as a mere warning.
    """
    if any(entry["exception"] for entry in results):
        return "error"
    failed = {entry["severity"] for entry in results if not entry["success"]}
    if "fail" in failed:
        return "fail"
    return "warn" if failed else "pass"
