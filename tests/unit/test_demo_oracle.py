"""The oracle on rows small enough to be worked out by hand."""

import json
from pathlib import Path

import pytest

from dev.demo.data import FLIGHT_COLUMNS
from dev.demo.oracle import ExpectedCounts, Oracle
from dev.demo.rows import Rows

REFERENCE = {
    "planes": (
        "tailnum,year,type,manufacturer,model,engines,seats,speed,engine\nN1,2004,Jet,EMBRAER,E-1,2,55,,Fan\n"
    ),
    "airlines": "carrier,name\nUA,United\n",
    "airports": "faa,name,lat,lon,alt,tz,dst,tzone\nEWR,Newark,1.0,2.0,3,-5,A,America/New_York\n",
}
READING = {
    "origin": "EWR", "observed_at": "2013-01-01T06:00:00Z", "temp": 50.0, "dewp": 32.0, "humid": 60.0,
    "wind_speed": 10.0, "precip": 1.0, "pressure": 1012.0, "visib": 10.0,
}  # fmt: skip


def flight(departed: str, number: int = 1, origin: str = "EWR", distance: int = 100, delay: int = 5) -> str:
    return f"UA,{number},N1,{origin},BQN,{departed},{departed},{delay},,30,{distance}"


def deliver(copy: Path, day: int, flights: list[str], weather: list[str] | None = None) -> None:
    for name, text in REFERENCE.items():
        (copy / "reference").mkdir(parents=True, exist_ok=True)
        (copy / "reference" / f"{name}.csv").write_text(text)
    folder = copy / f"day{day}"
    (folder / "flights").mkdir(parents=True)
    (folder / "flights" / "a.csv").write_text("\n".join([",".join(FLIGHT_COLUMNS), *flights]) + "\n")
    (folder / "weather.jsonl").write_text("".join(f"{line}\n" for line in weather or [json.dumps(READING)]))


def column(rows: Rows, name: str) -> list[object]:
    return sorted((dict(row)[name] for row in rows.counted.elements()), key=str)


def test_a_twin_counts_once_within_a_day_and_across_days(tmp_path: Path) -> None:
    deliver(tmp_path, 1, [flight("2013-01-01T10:00:00Z")] * 2)
    deliver(tmp_path, 2, [flight("2013-01-01T10:00:00Z"), flight("2013-01-01T11:00:00Z")])
    with Oracle(tmp_path) as oracle:
        assert oracle.rows("tables/flights").total == 2
        assert oracle.counts("flights", 1).published == 1
        assert oracle.counts("flights", 2) == ExpectedCounts(2, 0, 0, 0, 0, 1)


def test_a_row_is_late_when_older_than_all_earlier_days_less_the_delay(tmp_path: Path) -> None:
    deliver(tmp_path, 1, [flight("2013-01-01T20:00:00Z")])
    deliver(tmp_path, 2, [flight("2013-01-01T13:59:00Z"), flight("2013-01-01T14:01:00Z")])
    with Oracle(tmp_path) as oracle:
        assert oracle.counts("flights", 2) == ExpectedCounts(2, 0, 0, 0, 1, 1)
        # 14:01 is in time for the table (6 hours) and late for the hours (2 hours).
        assert oracle.counts("departures_hourly", 2).late == 1


def test_hours_appear_once_they_are_two_hours_in_the_past(tmp_path: Path) -> None:
    deliver(tmp_path, 1, [flight("2013-01-01T10:10:00Z", delay=3), flight("2013-01-01T12:59:00Z", 2)])
    deliver(tmp_path, 2, [flight("2013-01-01T10:50:00Z", 3, delay=6), flight("2013-01-01T13:00:00Z", 4)])
    with Oracle(tmp_path) as oracle:
        hours = oracle.rows("tables/departures_hourly")
        assert column(hours, "departures") == [2]
        assert column(hours, "mean_delay_minutes") == [4.5]
        assert oracle.counts("departures_hourly", 1).published == 0
        assert oracle.counts("departures_hourly", 2).published == 1


def test_what_comes_for_a_closed_hour_changes_nothing(tmp_path: Path) -> None:
    deliver(tmp_path, 1, [flight("2013-01-01T10:10:00Z"), flight("2013-01-01T14:00:00Z", 2)])
    deliver(tmp_path, 2, [flight("2013-01-01T10:50:00Z", 3)])
    with Oracle(tmp_path) as oracle:
        assert column(oracle.rows("tables/departures_hourly"), "departures") == [1]
        assert oracle.rows("tables/flights").total == 3


@pytest.mark.parametrize(
    "line",
    [
        "UA,1,N1,EWR",
        flight("2013-01-01T10:00:00Z") + ",again",
        flight("soon"),
        "UA,x" + flight("2013-01-01T10:00:00Z")[4:],
    ],
)
def test_a_line_that_is_no_flight_is_malformed_and_kept_as_it_came(tmp_path: Path, line: str) -> None:
    deliver(tmp_path, 1, [line, flight("2013-01-01T11:00:00Z")])
    with Oracle(tmp_path) as oracle:
        assert column(oracle.rows("quarantine/flights"), "payload") == [line]
        assert oracle.counts("flights", 1) == ExpectedCounts(2, 1, 0, 0, 0, 1)


def test_a_session_holds_departures_less_than_eight_hours_apart(tmp_path: Path) -> None:
    deliver(tmp_path, 1, [flight("2013-01-01T10:00:00Z"), flight("2013-01-01T17:00:00Z", 2)])
    deliver(tmp_path, 2, [flight("2013-01-02T01:30:00Z", 3), flight("2013-01-02T08:00:00Z", 4)])
    with Oracle(tmp_path) as oracle:
        sessions = oracle.rows("tables/aircraft_sessions")
        # The second session is open: fourteen hours after 08:00 have not been seen.
        assert column(sessions, "departures") == [2]
        assert column(sessions, "miles") == [200]
        assert oracle.counts("aircraft_sessions", 1).published == 0
        assert oracle.counts("aircraft_sessions", 2).published == 1


def test_a_route_has_one_row_that_counts_all_days(tmp_path: Path) -> None:
    deliver(tmp_path, 1, [flight("2013-01-01T10:00:00Z", delay=2), flight("2013-01-01T11:00:00Z", 2, "JFK")])
    deliver(tmp_path, 2, [flight("2013-01-01T12:00:00Z", 3, delay=6)])
    with Oracle(tmp_path) as oracle:
        routes = oracle.rows("tables/route_delays")
        assert column(routes, "departures") == [1, 2]
        assert column(routes, "mean_delay_minutes") == [4.0, 5.0]
        assert [oracle.counts("route_delays", day).published for day in (1, 2)] == [2, 1]


def test_a_departure_without_a_reading_comes_out_when_none_can_come_any_more(tmp_path: Path) -> None:
    later = json.dumps({**READING, "observed_at": "2013-01-01T16:00:00Z"})
    deliver(tmp_path, 1, [flight("2013-01-01T06:30:00Z"), flight("2013-01-01T07:30:00Z", 2)])
    deliver(tmp_path, 2, [flight("2013-01-01T16:30:00Z", 3)], [later])
    with Oracle(tmp_path) as oracle:
        readings = column(oracle.rows("tables/flight_weather"), "observed_at")
        assert [str(reading) for reading in readings] == [
            "2013-01-01 06:00:00",
            "2013-01-01 16:00:00",
            "None",
        ]
        assert [oracle.counts("flight_weather", day).published for day in (1, 2)] == [1, 2]


def test_2099_is_set_aside_and_makes_nothing_late(tmp_path: Path) -> None:
    deliver(tmp_path, 1, [flight("2099-01-01T00:00:00Z"), flight("2013-01-01T10:00:00Z")])
    deliver(tmp_path, 2, [flight("2013-01-01T11:00:00Z")])
    with Oracle(tmp_path) as oracle:
        assert oracle.counts("flights", 1) == ExpectedCounts(2, 0, 1, 0, 0, 1)
        assert oracle.counts("flights", 2).late == 0


def test_impossible_flights_are_quarantined_by_the_name_of_their_rule(tmp_path: Path) -> None:
    deliver(
        tmp_path,
        1,
        [flight("2013-01-01T10:00:00Z", origin="XXX"), flight("2013-01-01T10:00:00Z", distance=0)],
    )
    with Oracle(tmp_path) as oracle:
        assert column(oracle.rows("quarantine/flights"), "reason") == ["from_new_york", "goes_somewhere"]


def test_names_stay_empty_where_the_reference_does_not_know_them(tmp_path: Path) -> None:
    deliver(tmp_path, 1, [flight("2013-01-01T10:00:00Z")])
    with Oracle(tmp_path) as oracle:
        [row] = [dict(row) for row in oracle.rows("tables/flights_enriched").counted]
    assert (row["flight"], row["airline"], row["origin_name"], row["seats"]) == (
        "UA1",
        "United",
        "Newark",
        55,
    )
    assert row["dest_name"] is None


def test_weather_is_metric_and_bad_messages_are_sorted_out(tmp_path: Path) -> None:
    messages = [
        json.dumps(READING),
        "{",
        json.dumps({**READING, "temp": "warm"}),
        json.dumps({**READING, "humid": 180}),
    ]
    deliver(tmp_path, 1, [flight("2013-01-01T10:00:00Z")], messages)
    with Oracle(tmp_path) as oracle:
        [row] = [dict(row) for row in oracle.rows("tables/weather").counted]
        assert oracle.counts("weather", 1) == ExpectedCounts(4, 2, 0, 1, 0, 1)
    assert (row["temperature_c"], row["dew_point_c"], row["precipitation_mm"]) == (10.0, 0.0, 25.4)


def test_counts_of_a_day_that_never_came_are_an_error(tmp_path: Path) -> None:
    deliver(tmp_path, 1, [flight("2013-01-01T10:00:00Z")])
    with Oracle(tmp_path) as oracle, pytest.raises(LookupError):
        oracle.counts("flights", 4)
