"""A pipeline that streams another's table gets no row twice by a swap or a roll back, and misses none."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from drawdown.errors import RefusedError
from drawdown.rebuild.comparison_text import comparison_lines
from tests.support.rebuilds import NAME, SPEC, Hourly, event, sums

FIRST = [event("02T06:10", 1), event("02T07:30", 4)]
SECOND = [event("02T08:10", 8), event("02T09:10", 16)]
THIRD = [event("02T09:50", 32), event("02T11:10", 64)]
FOURTH = [event("02T11:50", 128), event("02T13:10", 256)]
READER = """
sources: {hours: {format: delta, path: tables/hourly, options: {skipChangeCommits: true}}}
transform: transform.sql
sink: {format: delta, path: tables/copy, schema: copy.ddl}
"""


def copied(hourly: Hourly) -> Counter[tuple[Any, ...]]:
    """What has come to the reader."""
    hourly.drain("reader")
    return Counter((f"{row[0]:%dT%H}", *row[1:]) for row in hourly.delta("tables/copy"))


def refusal(hourly: Hourly, choice: str, number: int) -> RefusedError:
    before = hourly.everything()
    with pytest.raises(RefusedError) as refused:
        hourly.end(choice, number)
    assert hourly.everything() == before
    return refused.value


@pytest.mark.full
def test_a_reader_that_passes_over_changes_gets_every_row_once(hourly: Hourly) -> None:
    hourly.live_version()
    hourly.arrive_and_run(1, FIRST)
    columns = "hour TIMESTAMP, total BIGINT"
    hourly.pipeline("reader", READER, copy_ddl=columns, transform_sql="SELECT hour, total FROM hours")
    assert copied(hourly) == hourly.rows()
    hourly.next_version()
    folder = hourly.root / "include/pipelines/hourly/next"
    (folder / "hourly.ddl").write_text(columns)
    by_one = (
        "SELECT window.start AS hour, sum(n) AS total FROM events GROUP BY window(at, '60 minutes'), 1 = 1"
    )
    (folder / "transform.sql").write_text(by_one)
    hourly.rebuilt()
    found = hourly.comparison()
    assert found["readers"] == ["reader"]
    assert any("streamed by reader" in line for line in comparison_lines(found))

    hourly.arrive_and_run(2, SECOND)
    assert copied(hourly) == sums(FIRST + SECOND, "02T09", by_key=False)
    error = refusal(hourly, "approve", 1)
    assert error.id == "rebuild.readers"
    hourly.arrive(3, THIRD)
    hourly.rebuilt()
    assert refusal(hourly, "approve", 2).id == "rebuild.readers", "the shadow has read further"
    hourly.run(NAME)
    hourly.rebuilt()
    hourly.end("approve", 3)
    assert copied(hourly) == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)
    hourly.end("rollback", 4)
    assert copied(hourly) == sums(FIRST + SECOND + THIRD, "02T11", by_key=False), "nothing was drained since"

    hourly.rebuilt()
    hourly.end("approve", 5)
    hourly.arrive_and_run(4, FOURTH)
    everything = sums(FIRST + SECOND + THIRD + FOURTH, "02T13", by_key=False)
    assert copied(hourly) == everything
    error = refusal(hourly, "rollback", 6)
    assert error.id == "rebuild.readers"
    assert "rebuild it" in error.do
    # The way on: the old version, as a rebuild.
    (folder / "pipeline.yaml").write_text(SPEC)
    hourly.rebuilt()
    hourly.end("approve", 7)
    assert copied(hourly) == everything
    assert hourly.rows() == everything
