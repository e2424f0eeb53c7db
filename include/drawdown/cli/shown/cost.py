"""Formats costs for `drawdown cost`: tables and sentences for people, plain values for JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING, Any

from drawdown.cli.shown.listing import UNKNOWN, Heading, Listing, listing
from drawdown.cost.bill import Bill, bill_of
from drawdown.cost.charges import Charge
from drawdown.cost.crossing import LEAST_RUNS, Crossing
from drawdown.cost.report import PipelineCost, total
from drawdown.values.text import counted

if TYPE_CHECKING:
    from rich.text import Text

_MILLION = 1_000_000
_UNITS = (("s", 1, 90), ("min", 60, 5_400), ("h", 3_600, 172_800), ("days", 86_400, float("inf")))
_ASKED = (
    Heading("runs", "number"),
    Heading("rows", "number"),
    Heading("core-h", "number"),
    Heading("used", "number"),
    Heading("GB-h", "number", wide=True),
    Heading("requests", "number", wide=True),
)


def pipeline_table(costs: Sequence[PipelineCost], *, wide: bool = False) -> Listing:
    """Return one line per pipeline, and their sum; in money, or core-hours if no profile has a price."""
    whole = total(each.bill for each in costs)
    priced = teller(whole)
    rows = [
        [
            *(each.pipeline, *_asked(each.bill), _cost(each.bill, priced), *_extrapolated(each, priced)),
            priced(each.always_on) if each.always_on else "",
            _crosses(each.crossing) if each.always_on else "",
        ]
        for each in costs
    ]
    if len(costs) > 1:
        always = priced(total(each.always_on for each in costs if each.always_on))
        rows.append(["total", *_asked(whole), _cost(whole, priced), "", "", always, ""])
    columns = [
        Heading("pipeline", "text"),
        *_ASKED,
        Heading("cost", "number"),
        Heading("per day", "number"),
        Heading("per million rows", "number", wide=True),
        Heading("always on", "number", wide=True),
        Heading("crosses at", "number", wide=True),
    ]
    return listing(columns, rows, wide=wide)


def day_table(bills: Mapping[date, Bill], *, wide: bool = False) -> Listing:
    """Return one line per day, and their sum."""
    whole = total(bills.values())
    priced = teller(whole)
    rows = [[str(day), *_asked(bill), priced(bill)] for day, bill in bills.items()]
    columns = [Heading("day (UTC)"), *_ASKED, Heading("cost", "number")]
    return listing(columns, [*rows, ["total", *_asked(whole), priced(whole)]], wide=wide)


def summary(charges: Sequence[Charge]) -> Iterator[str]:
    """Yield a sentence about how the applications spent their time."""
    known = {each.application: each.usage for each in charges if each.usage is not None}
    if not known:
        return
    bill = total(each.bill for each in charges)
    idle = f"{bill.idle_us / bill.core_us:.0%}" if bill.core_us else "0%"
    starts = [usage["start_us"] / 1e6 for usage in known.values() if usage["start_us"] is not None]
    up = f"; Spark was up after {median(starts):.1f} s (median)" if starts else ""
    yield f"{counted(len(known), 'application')}; they were idle for {idle} of their time{up}"


def notes(costs: Sequence[PipelineCost], *, crossings: bool) -> Iterator[str]:
    """Yield what is not included in the figures and, with `crossings`, why no schedule is given."""
    for each in costs:
        bill = each.bill
        if bill.unknown:
            yield f"{each.pipeline}: not included, older than cost tracking: {counted(bill.unknown, 'run')}"
        if bill.unmeasured:
            yield (
                f"{each.pipeline}: killed or still running: {counted(bill.unmeasured, 'run')}; requested"
                " time counts up to the last heartbeat, used time is unknown"
            )
        if bill.unpriced and bill.money:
            yield f"{each.pipeline}: {counted(bill.unpriced, 'run')} under a profile without `price:`"
        if crossings and each.always_on is not None and (why := _too_little(each)):
            yield f"{each.pipeline}: per day and per million rows: unknown ({why})"
        if crossings and isinstance(each.crossing, str) and each.always_on is not None:
            yield f"{each.pipeline}: break-even schedule: n/a ({each.crossing})"


def usage_sentence(usage: Mapping[str, Any]) -> str:
    """Describe one run's share."""
    bill = bill_of(usage)
    used = "unknown" if bill.unmeasured else f"{bill.cpu_us / 1e6:.1f}"
    parts = [
        f"core-seconds: {bill.core_us / 1e6:.1f} requested, {used} used, {bill.idle_us / 1e6:.1f} idle",
        f"{float(bill.gb_hours) * 3_600:.1f} GB-seconds requested",
        *(
            [f"{sum(bill.requests.values()):,} requests to object storage ({_kinds(bill)})"]
            if bill.requests
            else []
        ),
        *(f"{number(amount)} {currency}" for currency, amount in bill.money.items()),
    ]
    return "; ".join(parts)


def _kinds(bill: Bill) -> str:
    return ", ".join(f"{times:,} {kind}" for kind, times in bill.requests.items())


def pipeline_values(costs: Sequence[PipelineCost]) -> dict[str, Any]:
    """Return hours and money rounded to nine digits; `always_on` refers to ``days``."""
    return {
        "pipelines": [
            {
                "pipeline": each.pipeline,
                "days": rounded(each.days),
                **_values(each.bill),
                "always_on": each.always_on and _values(each.always_on),
                "crossing": _crossing_values(each.crossing),
            }
            for each in costs
        ],
        "total": _values(total(each.bill for each in costs)),
    }


def day_values(bills: Mapping[date, Bill]) -> dict[str, Any]:
    """Return one entry per day, and their sum."""
    days = [{"day": str(day), **_values(bill)} for day, bill in bills.items()]
    return {"days": days, "total": _values(total(bills.values()))}


def _values(bill: Bill) -> dict[str, Any]:
    figures = {
        "rows": bill.rows,
        "core_hours_asked": rounded(bill.core_hours),
        "core_hours_used": None if _used(bill) is None else rounded(bill.cpu_hours),
        "core_hours_idle": rounded(bill.idle_hours),
        "gb_hours_asked": rounded(bill.gb_hours),
        "requests": dict(bill.requests),
        "gb_hours_peak": None if _used(bill) is None else rounded(bill.peak_gb_hours),
    }
    return {
        "runs": bill.runs,
        **(figures if _known(bill) else dict.fromkeys(figures)),
        "money": {currency: rounded(amount) for currency, amount in bill.money.items()},
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


def rounded(value: Fraction) -> float:
    return float(round(value, 9))


def _asked(bill: Bill) -> list[Text | str]:
    if not _known(bill):
        return ["0", *[UNKNOWN] * 5]
    used = UNKNOWN if _used(bill) is None else number(bill.cpu_hours)
    asked = [f"{bill.runs:,}", f"{bill.rows:,}", number(bill.core_hours), used, number(bill.gb_hours)]
    return [*asked, f"{sum(bill.requests.values()):,}" if bill.requests else ""]


def _cost(bill: Bill, priced: Callable[[Bill], str]) -> Text | str:
    return priced(bill) if _known(bill) else UNKNOWN


def _known(bill: Bill) -> bool:
    """Whether anything is known about its runs; no runs at all cost nothing."""
    return bool(bill.runs) or not bill.unknown


def _used(bill: Bill) -> Fraction | None:
    """Return core-hours used; None if unknown for all runs."""
    return bill.cpu_hours if bill.cpu_us or not bill.unmeasured else None


def _too_little(cost: PipelineCost) -> str | None:
    """Return why costs per day or million rows cannot be computed; None if they can."""
    if cost.bill.runs < LEAST_RUNS:
        return f"{cost.bill.runs} of {LEAST_RUNS} runs needed"
    return "needs runs of at least one day" if cost.days < 1 else None


def _extrapolated(cost: PipelineCost, priced: Callable[[Bill, Fraction], str]) -> list[Text | str]:
    """Return the costs per day and per million rows."""
    bill = cost.bill
    if cost.always_on is None:
        return ["", ""]
    if _too_little(cost):
        return [UNKNOWN, UNKNOWN]
    per_rows = priced(bill, Fraction(_MILLION, bill.rows)) if bill.rows else ""
    return [priced(bill, 1 / cost.days), per_rows]


def teller(whole: Bill) -> Callable[..., str]:
    """Return a function that formats a bill or a part of one."""

    def priced(bill: Bill, part: Fraction = Fraction(1)) -> str:
        if not whole.money:
            return f"{number(bill.core_hours * part)} core-h"
        return " + ".join(f"{number(amount * part)} {name}" for name, amount in bill.money.items())

    return priced


def number(value: Fraction) -> str:
    return f"{float(value):,.2f}" if value >= 10 else f"{float(value):,.4f}"


def _crosses(crossing: Crossing | str) -> str:
    if isinstance(crossing, str):
        return "n/a"
    if crossing.every is None:
        return "any schedule"
    name, unit, _ = next(each for each in _UNITS if crossing.every < each[2])
    return f"every {crossing.every / unit:.2g} {name}"
