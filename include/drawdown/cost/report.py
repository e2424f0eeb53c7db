"""Reports costs by pipeline, compared with an always-on stream, and by day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction

from drawdown.cost.bill import Bill, money
from drawdown.cost.charges import NO_RUN, Charge
from drawdown.cost.crossing import Crossing, crossing
from drawdown.metastore.columns import microseconds

_DAY_US = 86_400_000_000


@dataclass(frozen=True)
class PipelineCost:
    """One pipeline.

    Attributes:
        days: since its first run, at most the report's period; 0 if it is not a pipeline.
        always_on: the cost of its part of an always-on stream of the same size over the same days; None if no
            profile is known.
        crossing: the break-even schedule, or why there is none.
    """

    pipeline: str
    bill: Bill
    days: Fraction
    always_on: Bill | None
    crossing: Crossing | str


def by_day(charges: Iterable[Charge]) -> dict[date, Bill]:
    """Return bills by the UTC day on which the application began."""
    bills: dict[date, Bill] = defaultdict(Bill)
    for charge in charges:
        bills[charge.started_at.date()] += charge.bill
    return dict(sorted(bills.items()))


def by_pipeline(
    charges: Iterable[Charge],
    since: datetime,
    now: datetime,
    first_runs: Mapping[str, datetime],
    groups: Mapping[str, str],
) -> list[PipelineCost]:
    """Return costs by name; those without a run come last.

    Args:
        first_runs: pipeline to the start of its first run.
        groups: pipeline to its group. The pipelines of a group that are charged share one always-on
            application evenly.
    """
    of: dict[str, list[Charge]] = defaultdict(list)
    for charge in charges:
        of[charge.pipeline].append(charge)
    found = []
    for name in sorted(of, key=lambda name: (name == NO_RUN, name)):
        others = [each for each in of if groups.get(each, each) == groups.get(name, name)]
        days = Fraction(0) if name == NO_RUN else _days(max(since, first_runs.get(name, since)), now)
        found.append(_of(name, of[name], days, Fraction(1, len(others))))
    return found


def total(bills: Iterable[Bill]) -> Bill:
    """Return the sum."""
    return sum(bills, Bill())


def _days(start: datetime, end: datetime) -> Fraction:
    return Fraction(microseconds(end) - microseconds(start), _DAY_US)


def _of(name: str, charges: Sequence[Charge], days: Fraction, part: Fraction) -> PipelineCost:
    bill = total(charge.bill for charge in charges)
    if name == NO_RUN:
        return PipelineCost(name, bill, days, None, "no run")
    runs = [(each.rows, each.usage["us"]) for each in charges if each.work and each.usage is not None]
    rows_per_day = bill.rows / days if days else Fraction(0)
    return PipelineCost(
        name, bill, days, _always_on(charges, days * part), crossing(runs, rows_per_day, part)
    )


def _always_on(charges: Sequence[Charge], days: Fraction) -> Bill | None:
    """Return the bill of an application with the newest profile for this many days."""
    known = [(each.started_at, each.usage) for each in charges if each.usage is not None]
    if not known:
        return None
    _, newest = max(known, key=lambda each: each[0])
    us = round(days * _DAY_US)
    core_us, byte_us = us * newest["cores"], us * newest["memory"]
    return Bill(core_us=core_us, byte_us=byte_us, money=money(newest["price"], core_us, byte_us))
