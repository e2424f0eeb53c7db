"""A calendar as SVG: a row for each hour, day, month or year, a mark for each interval.

Marks differ by shape, not by colour alone, and each has a title.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from drawdown.values.text import in_utc

_LABEL, _TOP, _WIDEST, _LARGEST = 84, 18, 780, 20
_FORMATS = {"hour": "%Y-%m-%d %H h", "day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}


def draw(calendar: Mapping[str, Any]) -> Markup:
    """Return the picture of a Calendar, given as plain values."""
    side = min(_LARGEST, _WIDEST // calendar["columns"])
    parts = [_ticks(calendar, side)]
    for number, row in enumerate(calendar["rows"]):
        top = _TOP + number * (max(side, 12) + 2)
        parts.append(
            Markup('<text x="0" y="{}">{}</text>').format(
                top + 14, row["start"].strftime(_FORMATS[calendar["unit"]])
            )
        )
        parts += [_cell(each, _LABEL + each["column"] * side, top, side) for each in row["cells"]]
    width = _LABEL + calendar["columns"] * side
    height = _TOP + len(calendar["rows"]) * (max(side, 12) + 2)
    said = ", ".join(f"{count} {fate}" for fate, count in calendar["counts"].items())
    return Markup('<svg class="calendar" role="img" aria-label="{}" width="{}" height="{}">{}</svg>').format(
        f"Intervals of {calendar['pipeline']}: {said}", width, height, Markup("").join(parts)
    )


def mark(fate: str, side: int = 14) -> Markup:
    """Return the mark of a fate, for a legend."""
    return Markup('<svg class="mark-of" aria-hidden="true" width="{0}" height="{0}">{1}</svg>').format(
        side, _shape(fate, 0, 0, side)
    )


def _ticks(calendar: Mapping[str, Any], side: int) -> Markup:
    """Numbers above the columns: days of a month, hours of a day, minutes of an hour; not of a year."""
    length: timedelta = calendar["length"]
    each, first = {
        "hour": (timedelta(minutes=1), 0),
        "day": (timedelta(hours=1), 0),
        "month": (timedelta(days=1), 1),
        "year": (timedelta(days=1), 1),
    }[calendar["unit"]]
    every = max(1, -(-24 // side))
    return Markup("").join(
        Markup('<text x="{}" y="11">{}</text>').format(
            _LABEL + column * side + 1, first + int(column * length / each)
        )
        for column in range(0, calendar["columns"], every)
    )


def _cell(cell: Mapping[str, Any], left: int, top: int, side: int) -> Markup:
    return Markup("<g>{}<title>{}</title></g>").format(
        _shape(cell["fate"], left, top, side), f"{_said(cell['start'], cell['end'])}: {cell['why']}"
    )


def _said(start: datetime, end: datetime) -> str:
    return f"{in_utc(start)} to {in_utc(end)} UTC"


def _shape(fate: str, left: int, top: int, side: int) -> Markup:
    size = side - 2
    right, bottom = left + size, top + min(size, 18)
    if fate == "unrecorded":
        middle = Markup('<circle class="fate-unrecorded" cx="{}" cy="{}" r="1.5"/>')
        return middle.format((left + right) / 2, (top + bottom) / 2)
    box = Markup('<rect class="fate-{}" x="{}" y="{}" width="{}" height="{}" rx="2"/>').format(
        fate, left + 0.5, top + 0.5, size - 1, bottom - top - 1
    )
    lines: dict[str, list[tuple[float, float, float, float]]] = {
        "stale": [(left + 3, bottom - 3, right - 3, top + 3)],
        "failed": [
            (left + 3, bottom - 3, right - 3, top + 3),
            (left + 3, top + 3, right - 3, bottom - 3),
        ],
        "replayed": [(left + 3, (top + bottom) / 2, right - 3, (top + bottom) / 2)],
    }
    return box + Markup("").join(
        Markup('<line class="fate-line-{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(fate, *each)
        for each in lines.get(fate, [])
    )
