"""The fleet in one screen: a line a pipeline, worst first, and below what to do about those that need it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from drawdown.cli.shown.listing import UNKNOWN, Heading, count, duration, listing, moment
from drawdown.cli.shown.runs import seconds
from drawdown.cli.shown.sparkline import rows_read, sparkline
from drawdown.fleet.standing import Standing

_STYLES = {
    **{"failed": "bold red", "refused": "bold red", "held": "yellow", "stale": "yellow"},
    **{"retention at risk": "bold red", "lagging": "yellow", "rebuild waiting": "yellow"},
    **{"late flood": "yellow", "quarantine growing": "yellow"},
    **{"waiting": "yellow", "never ran": "dim", "running": "cyan", "ok": "green"},
}
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60))
_COLUMNS = (
    Heading("state", "text"),
    Heading("pipeline", "text"),
    Heading("published", "number"),
    Heading("rows", "number"),
    Heading("held", "number"),
    Heading("fresh"),
    Heading("last runs"),
    Heading("last run", wide=True),
    Heading("took", "number", wide=True),
)


def status_screen(found: Sequence[Standing], *, wide: bool = False) -> RenderableType:
    """The table, and the commands."""
    table = listing(_COLUMNS, [_cells(each) for each in found], wide=wide)
    read = f"as recorded at {found[0].now:%Y-%m-%d %H:%M:%S} UTC" if found else "there are no pipelines"
    return Group(table, Text(read, "dim"), *_to_do(found))


def status_values(each: Standing) -> dict[str, Any]:
    """For a JSON document; seconds, and times in UTC."""
    last = each.runs[0] if each.runs else None
    return {
        "pipeline": each.pipeline,
        **each.finding._asdict(),
        "published_at": each.published_at,
        "last_run": last
        and {
            "run_id": last.run_id,
            "state": last.state,
            "verdict": last.verdict,
            "started_at": last.started_at,
            "read": last.counts.read if last.counted else None,
            "published": last.counts.published if last.counted else None,
            "seconds": seconds(last),
        },
        "held": [
            {"batches": str(term.held), "rows": term.held.rows, "since": term.since, "ends": term.ends}
            for term in each.held
        ],
        "freshness": _freshness(each),
        "read_by_last_runs": rows_read(each.runs),
        "recorded_at": each.now,
    }


def _freshness(each: Standing) -> dict[str, Any] | None:
    if each.promise is None:
        return None
    age = None if each.age is None else each.age.total_seconds()
    return {"promised": each.promise.total_seconds(), "age": age, "kept": not each.is_late}


def _cells(each: Standing) -> list[Text | str]:
    last = each.runs[0] if each.runs else None
    published = None if each.published_at is None else each.now - each.published_at
    return [
        Text(each.finding.state, _STYLES[each.finding.state]),
        each.pipeline,
        "never" if published is None else f"{_short(published)} ago",
        "" if last is None else count(last.counts.read, exact=False) if last.counted else UNKNOWN,
        _held(each),
        _fresh(each),
        sparkline(rows_read(each.runs)),
        "" if last is None else moment(last.started_at),
        "" if last is None else duration(seconds(last)),
    ]


def _held(each: Standing) -> Text | str:
    if not each.held:
        return ""
    oldest = _short(each.now - each.held[0].since)
    return Text(f"{len(each.held)}, {oldest}", "bold red" if each.held[0].over else "yellow")


def _fresh(each: Standing) -> Text | str:
    if each.promise is None or each.age is None:
        return ""
    if each.is_late:
        return Text(f"{_short(each.age - each.promise)} late", "yellow")
    return f"{_short(each.promise - each.age)} left"


def _short(age: timedelta) -> str:
    """In its greatest unit: 40s, 12m, 5h, 3d."""
    total = max(0, int(age.total_seconds()))
    unit, size = next((each for each in _UNITS if total >= each[1]), ("s", 1))
    return f"{total // size}{unit}"


def _to_do(found: Sequence[Standing]) -> Iterator[Text]:
    for each in found:
        state, why, do = each.finding
        if why and state != "running":
            yield Text.assemble((state, _STYLES[state]), f" {each.pipeline}: {why}\n  do: {do}")
    never = [each.pipeline for each in found if each.finding.state == "never ran"]
    if never:
        yield Text(f"never ran: drawdown run {' '.join(never)}")
