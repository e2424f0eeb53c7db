"""What the demo delivers is the same every time and holds the faults it promises."""

from datetime import UTC, datetime, timedelta

import pytest

from dev.demo.data import FLIGHT_COLUMNS, Day, days, reference


@pytest.fixture(scope="module")
def three_days() -> list[Day]:
    return days()


def _lines(day: Day) -> list[str]:
    return [line for file in day.files for line in file.lines]


def _departed(line: str) -> datetime:
    return datetime.fromisoformat(line.split(",")[FLIGHT_COLUMNS.index("departed_at")])


def test_the_same_seed_delivers_the_same_bytes(three_days: list[Day]) -> None:
    assert days() == three_days


def test_another_seed_breaks_other_rows(three_days: list[Day]) -> None:
    other = days(seed=1)
    assert other != three_days
    assert other[2] == three_days[2]


def test_nearly_all_real_departures_of_three_days_are_delivered(three_days: list[Day]) -> None:
    assert len({line for day in three_days for line in _lines(day)}) > 2600
    assert [day.date.isoformat() for day in three_days] == ["2013-01-01", "2013-01-02", "2013-01-03"]


def test_days_without_faults_hold_each_departure_once_and_in_order(three_days: list[Day]) -> None:
    for day in (three_days[0], three_days[2]):
        lines = _lines(day)
        assert len(set(lines)) == len(lines)
        assert [_departed(line) for line in lines] == sorted(_departed(line) for line in lines)


def test_a_day_begins_long_after_the_day_before_has_ended(three_days: list[Day]) -> None:
    ends = max(_departed(line) for line in _lines(three_days[0]))
    next_begins = _departed(_lines(three_days[1])[0])
    assert next_begins - ends > timedelta(hours=5)


def test_files_are_text_with_a_header_line(three_days: list[Day]) -> None:
    file = three_days[0].files[0]
    header, *rest = file.text.splitlines()
    assert header == ",".join(FLIGHT_COLUMNS)
    assert tuple(rest) == file.lines


def test_day_two_repeats_lines_of_its_own_and_of_day_one(three_days: list[Day]) -> None:
    first, second = _lines(three_days[0]), _lines(three_days[1])
    assert len(set(first) & set(second)) == 5
    assert len(second) - len(set(second)) == 9


def test_late_rows_are_late_by_hours_and_not_by_a_margin(three_days: list[Day]) -> None:
    end = max(_departed(line) for line in _lines(three_days[0]))
    old = set(_lines(three_days[1])) - set(_lines(three_days[0]))
    ages = [
        end - _departed(line)
        for line in old
        if line.count(",") == 10 and "yesterday" not in line and _departed(line) < end
    ]
    near = [age for age in ages if age < timedelta(hours=2)]
    between = [age for age in ages if timedelta(hours=3) < age < timedelta(hours=5)]
    far = [age for age in ages if age > timedelta(hours=10)]
    assert (len(near), len(between), len(far)) == (5, 10, 15)
    assert len(ages) == len(near) + len(between) + len(far)


def test_day_two_has_one_departure_of_2099(three_days: list[Day]) -> None:
    assert sum("2099-01-01T00:00:00Z" in line for line in _lines(three_days[1])) == 1


def test_a_sample_of_every_fifth_flight_keeps_all_kinds_of_faults() -> None:
    full, sample = days()[1], days(every=5)[1]
    assert len(sample.messages) == len(full.messages)
    assert sum(len(file.lines) for file in sample.files) < 300
    assert any("2099-01-01" in line for line in _lines(sample))


def test_reference_tables_have_whole_numbers_without_a_point() -> None:
    planes = reference()["planes"].splitlines()
    assert planes[0].startswith("tailnum,year,")
    assert planes[1].split(",")[1] == "2004"
    assert all(len(text) > 0 for text in reference().values())


def test_times_are_utc(three_days: list[Day]) -> None:
    first = _departed(_lines(three_days[0])[0])
    assert first == datetime(2013, 1, 1, 10, 17, tzinfo=UTC)
