"""What a failed case shows, and a kill that never happened."""

from __future__ import annotations

import pytest

from drawdown.errors import DrawdownError
from drawdown.testing.cases.case_rows import Difference
from drawdown.testing.cases.crash import points, refuse_unreached
from drawdown.testing.cases.report import difference_lines
from drawdown.testing.cases.running import Result

COLUMNS = ("origin_of_the_flight", "window", "flights", *(f"measure_{n}" for n in range(10)))


def _row(flights: str | None, origin: str = "ABC") -> tuple[str | None, ...]:
    return (origin, "2024-01-01 00:00:00", flights, *("1.5" for _ in range(10)))


def _result(**of_case: object) -> Result:
    return Result("hourly", "first", 2, 1.0, **of_case)  # type: ignore[arg-type]


def test_of_two_rows_that_nearly_agree_only_what_differs_is_shown() -> None:
    found = Difference("output", COLUMNS, (_row("5"), _row("7", "XYZ")), (_row(None),))
    lines = difference_lines(_result(differences=(found,)))
    assert lines[0] == "after wave 2 the output differs: 2 missing, 1 unexpected"
    assert "      flights: expected 5, found NULL" in lines
    assert sum("flights: expected" in line for line in lines) == 1
    assert any(line.startswith("  - missing: origin_of_the_flight=XYZ") for line in lines)
    assert any(line.startswith("do: ") and "wave2.expected" in " ".join(lines) for line in lines)
    assert max(len(line) for line in lines) <= 80


def test_many_rows_are_counted_and_long_values_cut() -> None:
    rows = tuple((str(n), "x" * 500) for n in range(1000))
    lines = difference_lines(_result(differences=(Difference("quarantine", ("n", "payload"), rows, ()),)))
    assert "  and 990 more" in lines
    assert len(lines) < 40
    assert max(len(line) for line in lines) <= 80
    assert "wave2.quarantine" in " ".join(lines)


def test_a_point_that_no_wave_came_to_is_an_error() -> None:
    reached = [_result(point=point, kills=1) for point in points([]) if "show" not in point]
    missed = _result(point="before batch.show")
    refuse_unreached([*reached, missed], named=[])  # this sink has no such step
    with pytest.raises(DrawdownError, match="no wave of any case reached before batch") as caught:
        refuse_unreached([*reached, missed], named=["before batch.show"])
    assert caught.value.id == "test.not-reached"
    with pytest.raises(DrawdownError, match="nothing was killed there"):
        refuse_unreached([_result(point=point) for point in points([])], named=[])
