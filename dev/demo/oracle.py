"""The independent answer: DuckDB over the delivered bytes, with its own idea of late, twin and closed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import duckdb

from dev.demo.rows import Rows, normal

COUNTED = ("read", "malformed", "future", "quarantined", "late", "published")

_TABLES = {
    "tables/flights": "SELECT * EXCLUDE (day) FROM flights",
    "tables/departures_hourly": "SELECT * EXCLUDE (day) FROM departures_hourly",
    "tables/flights_enriched": "SELECT * EXCLUDE (day) FROM flights_enriched",
    "tables/weather": "SELECT * EXCLUDE (day) FROM weather",
    "tables/aircraft_sessions": "SELECT * EXCLUDE (day) FROM aircraft_sessions",
    "tables/route_delays": "SELECT * FROM route_delays",
    "tables/flight_weather": "SELECT * EXCLUDE (day) FROM flight_weather",
    "quarantine/flights": "SELECT reason, payload FROM quarantine_flights",
    "quarantine/weather": "SELECT reason, payload FROM quarantine_weather",
    "quarantine/flight_weather": "SELECT reason, payload FROM quarantine_flight_weather",
}


@dataclass(frozen=True)
class ExpectedCounts:
    """Rows one pipeline's run of one day must have accounted for."""

    read: int
    malformed: int
    future: int
    quarantined: int
    late: int
    published: int


class Oracle:
    """Answers for the days found in a folder of delivered data (see delivery.py)."""

    def __init__(self, copy: Path) -> None:
        self._connection = duckdb.connect(config={"threads": 2})
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET VARIABLE copy = ?", [str(copy)])
        self._connection.execute(Path(__file__).with_name("oracle.sql").read_text(encoding="utf-8"))

    def __enter__(self) -> Oracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    @property
    def tables(self) -> tuple[str, ...]:
        """Paths inside the storage root of all tables that can be compared."""
        return tuple(_TABLES)

    def rows(self, table: str) -> Rows:
        """All rows the table at this path must hold, as a multiset."""
        answer = self._connection.execute(_TABLES[table])
        columns = [column[0] for column in answer.description or []]
        return normal(columns, answer.fetchall())

    def counts(self, pipeline: str, day: int) -> ExpectedCounts:
        """What the run of a pipeline on a day must have counted."""
        query = f"SELECT {', '.join(COUNTED)} FROM counts WHERE pipeline = ? AND day = ?"  # noqa: S608
        row = self._connection.execute(query, [pipeline, day]).fetchone()
        if row is None:
            raise LookupError(f"nothing was delivered for {pipeline} on day {day}")
        return ExpectedCounts(*row)
