"""Expectations over the last audited slices: which held when, and what was observed last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from drawdown.metastore.records import Verdict

NOT_JUDGED = "empty"


@dataclass(frozen=True)
class Judgement:
    """One expectation on one slice: pass, warn, fail, error, or empty where it was not judged."""

    run_id: str
    batches: str
    at: datetime | None
    outcome: str


@dataclass(frozen=True)
class ExpectationRow:
    """One expectation.

    Attributes:
        judged: one entry for each slice, oldest first.
        newest: its entry in the newest verdict that has it, see AuditOutcome.
    """

    name: str
    severity: str
    judged: Sequence[Judgement]
    newest: dict[str, Any]

    @property
    def failed(self) -> int:
        return sum(each.outcome in ("fail", "warn", "error") for each in self.judged)

    @property
    def times_judged(self) -> int:
        return sum(each.outcome != NOT_JUDGED for each in self.judged)


def expectation_rows(verdicts: Sequence[Verdict]) -> list[ExpectationRow]:
    """Return a row for each expectation of these verdicts, given newest first; those that failed first."""
    entries = [{entry["name"]: entry for entry in verdict.results} for verdict in reversed(verdicts)]
    slices = list(zip(reversed(verdicts), entries, strict=True))
    names = dict.fromkeys(name for known in reversed(entries) for name in known)
    rows = [
        ExpectationRow(
            name,
            next(known[name] for known in reversed(entries) if name in known)["severity"],
            [
                Judgement(verdict.run_id, verdict.batches, verdict.created_at, judgement_of(known.get(name)))
                for verdict, known in slices
            ],
            next(known[name] for known in reversed(entries) if name in known),
        )
        for name in names
    ]
    return sorted(rows, key=lambda row: -row.failed)


def judgement_of(entry: dict[str, Any] | None) -> str:
    """Return how one entry of a verdict's results ended."""
    if entry is None or "unjudged" in entry:
        return NOT_JUDGED
    if entry["exception"]:
        return "error"
    return "pass" if entry["success"] else str(entry["severity"])
