"""What day 2 of the demo brings beside real rows: broken lines, bad JSON, impossible rows, 2099."""

from __future__ import annotations

import json
from collections.abc import Sequence

# Column positions in a flights line, see FLIGHT_COLUMNS in data.py.
_FLIGHT, _TAILNUM, _ORIGIN, _DEPARTED_AT, _DISTANCE = 1, 2, 3, 6, 10

BAD_MESSAGES = (
    '{"origin": "EWR", "observed_at": "2013-01-02T15:0',
    "no weather today",
    '{"origin": "EWR", "observed_at": "2013-01-02T16:00:00Z", "temp": "warm"}',
)


def broken_lines(lines: Sequence[str]) -> list[str]:
    """Lines no csv reader can make a flight of: cut off, one cell too many, words for numbers and times."""
    cut, long, worded, undated, *_ = lines
    return [
        ",".join(cut.split(",")[:4]),
        f"{long},again",
        _with_cell(worded, _FLIGHT, "four"),
        _with_cell(undated, _DEPARTED_AT, "yesterday"),
    ]


def impossible_flights(lines: Sequence[str]) -> list[str]:
    """Well-formed lines: two that break each row rule, one that left in 2099."""
    *_, nowhere, elsewhere, still, backwards, future = lines
    return [
        _with_cell(nowhere, _ORIGIN, "XXX"),
        _with_cell(elsewhere, _ORIGIN, "LAX"),
        _with_cell(still, _DISTANCE, "0"),
        _with_cell(backwards, _DISTANCE, "-719"),
        _with_cell(future, _DEPARTED_AT, "2099-01-01T00:00:00Z"),
    ]


def without_tail_number(line: str) -> str:
    """The same flight as some airlines report it: worth a warning, not a reason to set it aside."""
    return _with_cell(line, _TAILNUM, "")


def impossible_readings(message: str) -> list[str]:
    """Well-formed readings that break a rule: air wetter than water, a temperature below absolute zero."""
    reading = json.loads(message)
    return [
        json.dumps({**reading, "humid": 180.0}),
        json.dumps({**reading, "temp": -500.0}),
    ]


def _with_cell(line: str, position: int, value: str) -> str:
    cells = line.split(",")
    cells[position] = value
    return ",".join(cells)
