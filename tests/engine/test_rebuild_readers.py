"""A pipeline that streams another's table gets no row twice by a swap or a roll back, and misses none."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from drawdown.errors import RefusedError
from drawdown.plan.comparison_text import comparison_lines
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
from tests.support.workspace import Workspace

FIRST = [event("02T06:10", 1), event("02T07:30", 4)]
SECOND = [event("02T08:10", 8), event("02T09:10", 16)]
THIRD = [event("02T09:50", 32), event("02T11:10", 64)]
FOURTH = [event("02T11:50", 128), event("02T13:10", 256)]
READER = """
sources: {hours: {format: delta, path: tables/hourly, options: {skipChangeCommits: true}}}
transform: transform.sql
sink: {format: delta, path: tables/copy, schema: copy.ddl}
"""


def copied(workspace: Workspace) -> Counter[tuple[Any, ...]]:
    """What has come to the reader."""
    workspace.drain("reader")
    return Counter((f"{row[0]:%dT%H}", *row[1:]) for row in workspace.delta("tables/copy"))


def refusal(workspace: Workspace, choice: str, number: int) -> RefusedError:
    before = workspace.everything()
    with pytest.raises(RefusedError) as refused:
        end(workspace, choice, number)
    assert workspace.everything() == before
    return refused.value


@pytest.mark.full
def test_a_reader_that_passes_over_changes_gets_every_row_once(workspace: Workspace) -> None:
    live_version(workspace)
    land(workspace, 1, FIRST)
    workspace.run(NAME)
    columns = "hour TIMESTAMP, total BIGINT"
    workspace.pipeline("reader", READER, copy_ddl=columns, transform_sql="SELECT hour, total FROM hours")
    assert copied(workspace) == rows(workspace)
    next_version(workspace)
    folder = workspace.root / "include/pipelines/hourly/next"
    (folder / "hourly.ddl").write_text(columns)
    by_one = (
        "SELECT window.start AS hour, sum(n) AS total FROM events GROUP BY window(at, '60 minutes'), 1 = 1"
    )
    (folder / "transform.sql").write_text(by_one)
    rebuilt(workspace)
    found = comparison(workspace)
    assert found["readers"] == ["reader"]
    assert any("streamed by reader" in line for line in comparison_lines(found))

    land(workspace, 2, SECOND)
    workspace.run(NAME)
    assert copied(workspace) == sums(FIRST + SECOND, "02T09", by_key=False)
    error = refusal(workspace, "approve", 1)
    assert error.id == "rebuild.readers"
    land(workspace, 3, THIRD)
    rebuilt(workspace)
    assert refusal(workspace, "approve", 2).id == "rebuild.readers", "the shadow has read further"
    workspace.run(NAME)
    rebuilt(workspace)
    end(workspace, "approve", 3)
    assert copied(workspace) == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)
    end(workspace, "rollback", 4)
    assert copied(workspace) == sums(FIRST + SECOND + THIRD, "02T11", by_key=False), (
        "nothing was drained since"
    )

    rebuilt(workspace)
    end(workspace, "approve", 5)
    land(workspace, 4, FOURTH)
    workspace.run(NAME)
    everything = sums(FIRST + SECOND + THIRD + FOURTH, "02T13", by_key=False)
    assert copied(workspace) == everything
    error = refusal(workspace, "rollback", 6)
    assert error.id == "rebuild.readers"
    assert "rebuild it" in error.do
    # The way on: the old version, as a rebuild.
    (folder / "pipeline.yaml").write_text(SPEC)
    rebuilt(workspace)
    end(workspace, "approve", 7)
    assert copied(workspace) == everything
    assert rows(workspace) == everything
