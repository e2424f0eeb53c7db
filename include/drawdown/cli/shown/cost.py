"""Costs as `drawdown cost` shows them: tables and sentences for people, plain values for JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING, Any

from drawdown.cost.bill import Bill, bill_of
from drawdown.cost.charges import Charge
from drawdown.cost.crossing import Crossing
from drawdown.cost.report import PipelineCost, total

if TYPE_CHECKING:
    from rich.table import Table

_MILLION = 1_000_000
_UNITS = (("s", 1, 90), ("min", 60, 5_400), ("h", 3_600, 172_800), ("days", 86_400, float("inf")))
_ASKED = ("runs", "rows", "core-h asked", "used", "GB-h asked")


def pipeline_table(costs: Sequence[PipelineCost]) -> Table:
    """One line a pipeline, and their sum; amounts are money, or core-hours where no profile has a price."""
    priced = _teller(total(each.bill for each in costs))
    table = _table("pipeline", *_ASKED, "cost", "per day", "per million rows", "always on", "crosses at")
    for each in costs:
        always = priced(each.always_on) if each.always_on else ""
        table.add_row(
            each.pipeline,
            *_asked(each.bill),
            *_amounts(each.bill, each.days, priced),
            always,
            _crosses(each.crossing) if each.always_on else "",
        )
    if len(costs) > 1:
        bill = total(each.bill for each in costs)
        always = priced(total(each.always_on for each in costs if each.always_on))
        days = max(each.days for each in costs)
        table.add_section()
        table.add_row("total", *_asked(bill), *_amounts(bill, days, priced), always, "")
    return table


def day_table(bills: Mapping[date, Bill]) -> Table:
    """One line a day, and their sum."""
    whole = total(bills.values())
    priced = _teller(whole)
    table = _table("day (UTC)", *_ASKED, "cost")
    for day, bill in bills.items():
        table.add_row(str(day), *_asked(bill), priced(bill))
    table.add_section()
    table.add_row("total", *_asked(whole), priced(whole))
    return table


def summary(charges: Sequence[Charge]) -> Iterator[str]:
    """What the applications did with their time, in a sentence."""
    known = {each.application: each.usage for each in charges if each.usage is not None}
    if not known:
        return
    bill = total(each.bill for each in charges)
    idle = f"{bill.idle_us / bill.core_us:.0%}" if bill.core_us else "0%"
    starts = [usage["start_us"] / 1e6 for usage in known.values() if usage["start_us"] is not None]
    up = f"; Spark was up after {median(starts):.1f} s (median)" if starts else ""
    yield f"{len(known)} application(s); no pipeline was draining in {idle} of their time{up}"


def notes(costs: Sequence[PipelineCost], *, crossings: bool) -> Iterator[str]:
    """What is not in the figures, and, with `crossings`, why no schedule is given."""
    for each in costs:
        bill = each.bill
        if bill.unknown:
            yield f"{each.pipeline}: {bill.unknown} runs predate cost tracking and are not included"
        if bill.unmeasured:
            yield (
                f"{each.pipeline}: {bill.unmeasured} run(s) were killed or go on: asked for up to the last "
                "sign of life, used is unknown"
            )
        if bill.unpriced and bill.money:
            yield f"{each.pipeline}: {bill.unpriced} run(s) under a profile without `price:`"
        if crossings and isinstance(each.crossing, str) and each.always_on is not None:
            yield f"{each.pipeline}: break-even schedule: n/a ({each.crossing})"


def usage_sentence(usage: Mapping[str, Any]) -> str:
    """A run's own share."""
    bill = bill_of(usage)
    used = "unknown" if bill.unmeasured else f"{bill.cpu_us / 1e6:.1f}"
    parts = [
        f"core-seconds: {bill.core_us / 1e6:.1f} asked for, {used} used, {bill.idle_us / 1e6:.1f} idle",
        f"{float(bill.gb_hours) * 3_600:.1f} GB-seconds asked for",
        *(f"{_number(amount)} {currency}" for currency, amount in bill.money.items()),
    ]
    return "; ".join(parts)


def pipeline_values(costs: Sequence[PipelineCost]) -> dict[str, Any]:
    """Hours and money rounded to the ninth digit; ``days`` are what `always_on` is of."""
    return {
        "pipelines": [
            {
                "pipeline": each.pipeline,
                "days": _rounded(each.days),
                **_values(each.bill),
                "always_on": each.always_on and _values(each.always_on),
                "crossing": _crossing_values(each.crossing),
            }
            for each in costs
        ],
        "total": _values(total(each.bill for each in costs)),
    }


def day_values(bills: Mapping[date, Bill]) -> dict[str, Any]:
    """One entry a day, and their sum."""
    days = [{"day": str(day), **_values(bill)} for day, bill in bills.items()]
    return {"days": days, "total": _values(total(bills.values()))}


def _values(bill: Bill) -> dict[str, Any]:
    return {
        "runs": bill.runs,
        "rows": bill.rows,
        "core_hours_asked": _rounded(bill.core_hours),
        "core_hours_used": _rounded(bill.cpu_hours),
        "core_hours_idle": _rounded(bill.idle_hours),
        "gb_hours_asked": _rounded(bill.gb_hours),
        "gb_hours_peak": _rounded(bill.peak_gb_hours),
        "money": {currency: _rounded(amount) for currency, amount in bill.money.items()},
        "runs_unpriced": bill.unpriced,
        "runs_unmeasured": bill.unmeasured,
        "runs_unknown": bill.unknown,
    }


def _crossing_values(crossing: Crossing | str) -> dict[str, Any]:
    if isinstance(crossing, str):
        return {"not_told": crossing}
    return {
        "seconds": crossing.every,
        "seconds_per_run": crossing.fixed,
        "seconds_per_million_rows": crossing.per_row * _MILLION,
    }


def _rounded(value: Fraction) -> float:
    return float(round(value, 9))


def _table(first: str, *names: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in names:
        table.add_column(name, justify="right")
    return table


def _asked(bill: Bill) -> list[str]:
    if not bill.runs and bill.unknown:
        return ["0", "", *["[dim]unknown[/]"] * 3]
    used = _number(bill.cpu_hours) if bill.cpu_us or not bill.unmeasured else "[dim]unknown[/]"
    return [f"{bill.runs:,}", f"{bill.rows:,}", _number(bill.core_hours), used, _number(bill.gb_hours)]


def _amounts(bill: Bill, days: Fraction, priced: Callable[[Bill, Fraction], str]) -> list[str]:
    """In all, for a day and for a million rows; not for a day where less than one is looked at."""
    if not bill.runs and bill.unknown:
        return ["[dim]unknown[/]", "", ""]
    a_day = priced(bill, 1 / days) if days >= 1 else ""
    return [
        priced(bill, Fraction(1)),
        a_day,
        priced(bill, Fraction(_MILLION, bill.rows)) if bill.rows else "",
    ]


def _teller(whole: Bill) -> Callable[..., str]:
    """Says what a bill, or a part of it, comes to."""

    def priced(bill: Bill, part: Fraction = Fraction(1)) -> str:
        if not whole.money:
            return f"{_number(bill.core_hours * part)} core-h"
        return " + ".join(f"{_number(amount * part)} {name}" for name, amount in bill.money.items())

    return priced


def _number(value: Fraction) -> str:
    return f"{float(value):,.2f}" if value >= 10 else f"{float(value):,.4f}"


def _crosses(crossing: Crossing | str) -> str:
    if isinstance(crossing, str):
        return "[dim]n/a[/]"
    if crossing.every is None:
        return "any schedule"
    name, unit, _ = next(each for each in _UNITS if crossing.every < each[2])
    return f"every {crossing.every / unit:.2g} {name}"
