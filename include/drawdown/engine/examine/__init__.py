"""Rules about a pipeline's analysed plan: what Spark's documents allow, warn of and refuse.

Each module holds the rules of one chapter as a function (Subject) -> verdicts; nothing is started. The first
refusal is the error that a drain ends with: what is about one operator comes before what is about the mode.
Spark's own checker (UnsupportedOperationChecker) has the last word, in `unsupported`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from drawdown.engine.examine.bounded_way import bounded_way
from drawdown.engine.examine.chains import chains
from drawdown.engine.examine.changing_tables import changing_tables
from drawdown.engine.examine.deduplication import deduplication
from drawdown.engine.examine.event_times import event_times
from drawdown.engine.examine.function_modes import function_modes
from drawdown.engine.examine.joins import joins
from drawdown.engine.examine.output_modes import output_modes
from drawdown.engine.examine.sources import sources
from drawdown.engine.examine.state_functions import state_functions
from drawdown.engine.examine.subject import Subject
from drawdown.engine.examine.triggers import triggers
from drawdown.engine.examine.unbounded import unbounded
from drawdown.engine.examine.unsupported import unsupported
from drawdown.engine.examine.watermarks import watermarks
from drawdown.engine.examine.windows import windows
from drawdown.plan.verdicts import PlanVerdict

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
    """Every verdict on the plan, refusals first; the rules' order otherwise."""
    found = [verdict for rule in _RULES for verdict in rule(subject)]
    if all(verdict.level != "refused" for verdict in found):
        found += unsupported(subject)
    return sorted(found, key=lambda verdict: verdict.level != "refused")
