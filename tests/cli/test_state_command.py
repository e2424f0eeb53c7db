"""`drawdown state` as a stranger types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_commands import drawdown, refused
from tests.support.command_line import answer
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl, mode: complete}
state: {partitions: 2}
"""


@pytest.mark.full
def test_state_shows_stores_and_the_rows_of_a_key(tmp_path: Path) -> None:
    root = tmp_path / "a project"
    sandbox = Sandbox(root)
    sandbox.pipeline(
        "counts",
        SPEC,
        event_ddl="k STRING",
        out_ddl="k STRING, n BIGINT",
        transform_sql="SELECT k, count(*) AS n FROM events GROUP BY k",
    )
    assert "drawdown run counts" in refused(drawdown(root, "state", "counts"), 3, "state.no-checkpoint")
    sandbox.land_json("landing/events/1.json", [{"k": "a"}, {"k": "a"}, {"k": "b"}])
    assert drawdown(root, "run", "counts").returncode == 0

    stores = drawdown(root, "state", "counts")
    assert stores.returncode == 0, stores.stderr
    assert "stateStoreSave" in stores.stdout
    shown = drawdown(root, "state", "counts", "--key", '{"k": "a"}', "--batch", "0", "--json")
    assert [row["value"] for row in answer(shown.stdout)] == [{"count": 2}]
