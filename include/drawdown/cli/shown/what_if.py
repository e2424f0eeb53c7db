"""Formats what other profiles and schedules would have cost, for `drawdown cost --what-if`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from drawdown.cli.shown.cost import rounded, teller
from drawdown.cli.shown.listing import Heading, Listing, duration, listing
from drawdown.cost.bill import Bill
from drawdown.cost.run_time import RunTime
from drawdown.cost.what_if import SCHEDULES, Option, WhatIf
from drawdown.values.text import counted, lasting

if TYPE_CHECKING:
    from rich.text import Text

_MILLION = 1_000_000
_TOO_SLOW = "cannot keep up"


def what_if_table(found: WhatIf, *, wide: bool = False) -> Listing:
    """Return one line per size of a profile and schedule; those that are too seldom are dim."""
    from rich.text import Text

    columns = [
        Heading("cluster", "text"),
        Heading("cores", "number"),
        Heading("schedule"),
        Heading("rows a run", "number", wide=True),
        Heading("a run takes", "number"),
        Heading("GB", "number", wide=True),
        Heading("oldest row", "number"),
        Heading("per day", "number"),
        Heading("fresh"),
    ]
    rows: list[list[Text | str]] = []
    for each in found.options:
        style = "bold" if each is found.cheapest else "dim" if each.fresh is False else ""
        rows.append([Text(cell, style) for cell in _cells(each, found)])
    return listing(columns, rows, wide=wide, title=found.pipeline)


def what_if_notes(found: WhatIf) -> Iterator[str]:
    """Yield the answer, what it is computed from, and what is unknown."""
    name = found.pipeline
    yield f"{name}: {_answer(found)}"
    arriving = found.arrivals
    if isinstance(arriving, str):
        yield f"{name}: rows that arrive in an hour: unknown ({arriving})"
    else:
        began = "" if found.start is None else f"; Spark was up after {found.start:.1f} s (median)"
        yield (
            f"{name}: {arriving:,.0f} rows an hour, from {counted(found.runs, 'run')} in"
            f" {found.days:.1f} days{began}"
        )
    for cluster, times in found.times.items():
        if isinstance(times, RunTime):
            yield f"{name} on {cluster}: a run takes {_line(times, found.beside[cluster])}"
    for cluster, why in found.unknown.items():
        yield f"{name} on {cluster}: unknown ({why})"
    if any(each.beyond for each in found.options):
        yield (
            "~: a run would read more rows than any run on record: the figure follows the line through"
            " smaller ones"
        )


def what_if_values(found: WhatIf) -> dict[str, Any]:
    """Return seconds, and hours and money of a day rounded to nine digits."""
    return {
        "pipeline": found.pipeline,
        "runs": found.runs,
        "days": round(found.days, 6),
        "rows_per_hour": None if isinstance(found.arrivals, str) else found.arrivals,
        "freshness_seconds": found.freshness and found.freshness.total_seconds(),
        "seconds_until_spark": found.start,
        "profiles": {name: _time_values(times) for name, times in found.times.items()},
        "options": [_option_values(each) for each in found.options],
        "cheapest": None if isinstance(found.cheapest, str) else _option_values(found.cheapest),
        "not_told": _not_told(found),
    }


def _cells(each: Option, found: WhatIf) -> list[str]:
    rows = "" if each.rows is None else f"{each.rows:,.0f}"
    takes = "" if each.takes is None else f"{'~' if each.beyond else ''}{duration(each.takes)}"
    if each.bill is None:
        cost, oldest = "", _TOO_SLOW
    else:
        cost, oldest = teller(each.bill)(each.bill), duration(each.oldest) if each.oldest else "seconds"
    fresh = "cheapest" if each is found.cheapest else {True: "yes", False: "no", None: ""}[each.fresh]
    return [
        each.size.cluster,
        str(each.size.cores),
        each.schedule,
        rows,
        takes,
        f"{each.size.memory / 2**30:.1f}",
        oldest,
        cost,
        fresh,
    ]


def _answer(found: WhatIf) -> str:
    best = found.cheapest
    if isinstance(best, str):
        return f"no cheapest schedule is named: {best}"
    assert best.bill is not None
    assert found.freshness is not None
    cost = teller(best.bill)(best.bill)
    when = best.schedule if SCHEDULES[best.schedule] is None else f"every {best.schedule}"
    return (
        f"{best.size.cluster} with {counted(best.size.cores, 'core')}, {when}, is the cheapest within"
        f" `freshness: {lasting(found.freshness)}`: {cost} a day"
    )


def _line(times: RunTime, beside: int) -> str:
    rows = " or ".join(
        f"{seconds * _MILLION:,.1f} s a million rows with {counted(cores + beside, 'core')}"
        for cores, seconds in sorted(times.per_row.items())
    )
    return f"{times.fixed:,.1f} s and {rows} ({counted(times.runs, 'run')}, up to {times.largest:,} rows)"


def _time_values(times: RunTime | str) -> dict[str, Any]:
    if isinstance(times, str):
        return {"seconds_per_run": None, "seconds_per_million_rows": None, "runs": None, "largest_rows": None}
    return {
        "seconds_per_run": times.fixed,
        "seconds_per_million_rows": {
            str(cores): seconds * _MILLION for cores, seconds in sorted(times.per_row.items())
        },
        "runs": times.runs,
        "largest_rows": times.largest,
    }


def _option_values(each: Option) -> dict[str, Any]:
    return {
        "cluster": each.size.cluster,
        "cores": each.size.cores,
        "memory_bytes": each.size.memory,
        "schedule": each.schedule,
        "every_seconds": SCHEDULES[each.schedule],
        "rows_per_run": each.rows,
        "seconds_per_run": each.takes,
        "beyond_record": each.beyond,
        "oldest_row_seconds": each.oldest,
        "fresh": each.fresh,
        **_day_values(each.bill),
    }


def _day_values(bill: Bill | None) -> dict[str, Any]:
    if bill is None:
        return {"core_hours_per_day": None, "gb_hours_per_day": None, "money_per_day": None}
    return {
        "core_hours_per_day": rounded(bill.core_hours),
        "gb_hours_per_day": rounded(bill.gb_hours),
        "money_per_day": {currency: rounded(amount) for currency, amount in bill.money.items()},
    }


def _not_told(found: WhatIf) -> dict[str, str]:
    """Return why figures are unknown, by what they would be of."""
    said = {f"profile {name}": why for name, why in found.unknown.items()}
    if isinstance(found.arrivals, str):
        said["rows_per_hour"] = found.arrivals
    if isinstance(found.cheapest, str):
        said["cheapest"] = found.cheapest
    return said
