"""A pipeline that streams another's table gets no row twice by a swap or a roll back, and misses none."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from drawdown.errors import RefusedError
from drawdown.rebuild.comparison_text import comparison_lines
from tests.support.rebuilds import (
    NAME,
    SPEC,
    comparison,
    end,
    event,
    land,
    live_version,
    next_version,
    rebuilt,
    rows,
    sums,
)
from tests.support.sandbox import Sandbox

FIRST = [event("02T06:10", 1), event("02T07:30", 4)]
SECOND = [event("02T08:10", 8), event("02T09:10", 16)]
THIRD = [event("02T09:50", 32), event("02T11:10", 64)]
FOURTH = [event("02T11:50", 128), event("02T13:10", 256)]
READER = """
sources: {hours: {format: delta, path: tables/hourly, options: {skipChangeCommits: true}}}
transform: transform.sql
sink: {format: delta, path: tables/copy, schema: copy.ddl}
"""


def copied(sandbox: Sandbox) -> Counter[tuple[Any, ...]]:
    """What has come to the reader."""
    sandbox.drain("reader")
    return Counter((f"{row[0]:%dT%H}", *row[1:]) for row in sandbox.delta("tables/copy"))


def refusal(sandbox: Sandbox, choice: str, number: int) -> RefusedError:
    before = sandbox.everything()
    with pytest.raises(RefusedError) as refused:
        end(sandbox, choice, number)
    assert sandbox.everything() == before
    return refused.value


@pytest.mark.full
def test_a_reader_that_passes_over_changes_gets_every_row_once(sandbox: Sandbox) -> None:
    live_version(sandbox)
    land(sandbox, 1, FIRST)
    sandbox.run(NAME)
    columns = "hour TIMESTAMP, total BIGINT"
    sandbox.pipeline("reader", READER, copy_ddl=columns, transform_sql="SELECT hour, total FROM hours")
    assert copied(sandbox) == rows(sandbox)
    next_version(sandbox)
    folder = sandbox.root / "include/pipelines/hourly/next"
    (folder / "hourly.ddl").write_text(columns)
    by_one = (
        "SELECT window.start AS hour, sum(n) AS total FROM events GROUP BY window(at, '60 minutes'), 1 = 1"
    )
    (folder / "transform.sql").write_text(by_one)
    rebuilt(sandbox)
    found = comparison(sandbox)
    assert found["readers"] == ["reader"]
    assert any("streamed by reader" in line for line in comparison_lines(found))

    land(sandbox, 2, SECOND)
    sandbox.run(NAME)
    assert copied(sandbox) == sums(FIRST + SECOND, "02T09", by_key=False)
    error = refusal(sandbox, "approve", 1)
    assert error.id == "rebuild.readers"
    land(sandbox, 3, THIRD)
    rebuilt(sandbox)
    assert refusal(sandbox, "approve", 2).id == "rebuild.readers", "the shadow has read further"
    sandbox.run(NAME)
    rebuilt(sandbox)
    end(sandbox, "approve", 3)
    assert copied(sandbox) == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)
    end(sandbox, "rollback", 4)
    assert copied(sandbox) == sums(FIRST + SECOND + THIRD, "02T11", by_key=False), "nothing was drained since"

    rebuilt(sandbox)
    end(sandbox, "approve", 5)
    land(sandbox, 4, FOURTH)
    sandbox.run(NAME)
    everything = sums(FIRST + SECOND + THIRD + FOURTH, "02T13", by_key=False)
    assert copied(sandbox) == everything
    error = refusal(sandbox, "rollback", 6)
    assert error.id == "rebuild.readers"
    assert "rebuild it" in error.do
    # The way on: the old version, as a rebuild.
    (folder / "pipeline.yaml").write_text(SPEC)
    rebuilt(sandbox)
    end(sandbox, "approve", 7)
    assert copied(sandbox) == everything
    assert rows(sandbox) == everything
