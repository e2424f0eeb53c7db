"""Rules about a pipeline's analysed plan: what Spark's docs allow, warn about and refuse.

Each module holds the rules of one topic as a function (Subject) -> verdicts; nothing is started. A drain ends
with the first refusal: rules about one operator come before rules about the mode. Spark's own checker
(UnsupportedOperationChecker) comes last, in `unsupported`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.bounded_way import bounded_way
from drawdown.query.checks.changing_tables import changing_tables
from drawdown.query.checks.event_times import event_times
from drawdown.query.checks.output_modes import output_modes
from drawdown.query.checks.sources import sources
from drawdown.query.checks.stateful.chains import chains
from drawdown.query.checks.stateful.deduplication import deduplication
from drawdown.query.checks.stateful.function_modes import function_modes
from drawdown.query.checks.stateful.joins import joins
from drawdown.query.checks.stateful.session_windows import windows
from drawdown.query.checks.stateful.state_functions import state_functions
from drawdown.query.checks.subject import Subject
from drawdown.query.checks.triggers import triggers
from drawdown.query.checks.unbounded import unbounded
from drawdown.query.checks.unsupported import unsupported
from drawdown.query.checks.watermarks import watermarks

__all__ = ["Subject", "examine"]

_RULES: tuple[Callable[[Subject], Iterable[PlanVerdict]], ...] = (
    triggers,
    windows,
    state_functions,
    watermarks,
    joins,
    function_modes,
    chains,
    output_modes,
    deduplication,
    event_times,
    unbounded,
    bounded_way,
    sources,
    changing_tables,
)


def examine(subject: Subject) -> list[PlanVerdict]:
    """Return every verdict on the plan: refusals first, otherwise in the order of the rules."""
    found = [verdict for rule in _RULES for verdict in rule(subject)]
    if all(verdict.level != "refused" for verdict in found):
        found += unsupported(subject)
    return sorted(found, key=lambda verdict: verdict.level != "refused")
