"""What an audit concluded of a slice."""

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
    """

    outcome: Outcome
    results: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
