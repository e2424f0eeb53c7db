"""An audit's verdict on a slice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from drawdown.metastore.records import Outcome


@dataclass(frozen=True)
class AuditOutcome:
    """An audit's verdict with its evidence; safe to keep as JSON.

    Attributes:
        outcome: ``pass``, ``warn``, ``fail``, ``error`` (not judged, audit again) or ``empty``.
        results: one entry per expectation, in the order of quality.yaml: name, type, kwargs,
            severity (fail | warn), success, observed, unexpected_count, unexpected_percent (of the
            values that are not null), samples (at most three rows), exception (text or None).
        text: the same for people, on several lines.
        measures: measures of the slice for later comparison: ``HistoryExpectation.key`` to a number (rows, a
            share from 0 to 1, microseconds since 1970 UTC), or None where there is no value.
    """

    outcome: Outcome
    results: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
    measures: dict[str, Any] = field(default_factory=dict)
