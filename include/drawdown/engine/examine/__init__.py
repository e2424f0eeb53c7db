"""Rules about a pipeline's analysed plan: what Spark's documents allow, warn of and refuse.

Each module holds the rules of one chapter as a function (Subject) -> verdicts; nothing is started.
Spark's own checker (UnsupportedOperationChecker) has the last word, in `unsupported`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from drawdown.engine.examine.bounded_way import bounded_way
from drawdown.engine.examine.deduplication import deduplication
from drawdown.engine.examine.event_times import event_times
from drawdown.engine.examine.joins import joins
from drawdown.engine.examine.state_functions import state_functions
from drawdown.engine.examine.subject import Subject
from drawdown.engine.examine.unsupported import unsupported
from drawdown.plan.verdicts import PlanVerdict

__all__ = ["Subject", "examine"]

_RULES: tuple[Callable[[Subject], Iterable[PlanVerdict]], ...] = (
    joins,
    deduplication,
    state_functions,
    event_times,
    bounded_way,
    unsupported,
)


def examine(subject: Subject) -> list[PlanVerdict]:
    """Every verdict on the plan, refusals first; the rules' order otherwise."""
    found = [verdict for rule in _RULES for verdict in rule(subject)]
    return sorted(found, key=lambda verdict: verdict.level != "refused")
