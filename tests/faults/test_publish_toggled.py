"""`publish:` is toggled while slices wait, on each kind of sink: what is older is visible first, and once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.held.decide import Choice, Decision, decide
from drawdown.plan.version_in_use import in_use
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.support.kill_matrix import KINDS
from tests.support.row_by_row import NAME, Rows

ONE_ROW = """
expectations:
  - {type: expect_table_row_count_to_be_between, kwargs: {max_value: 1}}
"""
KINDS_OF_ROWS = {"delta append": "delta append audited", "postgres": "postgres append", "kafka": "kafka"}


@pytest.fixture
def rows(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Rows:
    kind = KINDS[KINDS_OF_ROWS[request.param]]
    server = request.getfixturevalue(kind.server) if kind.server else None
    return Rows(request.param, tmp_path / "project", spark, server, kind)


@pytest.mark.capability("RIGHT-01")
@pytest.mark.parametrize("choice", ["release", "discard"])
@pytest.mark.parametrize(
    "rows", ["delta append", *(pytest.param(kind, marks=pytest.mark.full) for kind in ("postgres", "kafka"))],
    indirect=True,
)  # fmt: skip
def test_slices_that_wait_are_visible_before_newer_ones(rows: Rows, choice: Choice) -> None:
    (rows.folder / "quality.yaml").write_text(ONE_ROW)
    rows.land(1, 95)
    rows.sandbox.drain(NAME)
    rows.land(3)
    rows.sandbox.drain(NAME)
    assert rows.in_sink() == {}
    spec = rows.folder / "pipeline.yaml"
    text = spec.read_text().replace("publish: audited, ", "").replace(", publish: audited", "")
    spec.write_text(text.replace("sink: {", "sink: {publish: direct, "))
    rows.land(4)
    rows.sandbox.drain(NAME)
    assert rows.in_sink() == {}, "1 and 95 are held, and what follows waits behind them"
    with Workspace.open(rows.sandbox.project) as workspace:
        pipeline = in_use(workspace, load_pipeline(rows.sandbox.project, NAME))
        decide(workspace, pipeline, Decision(choice, f"{choice}-1", "this process", "ada", "looked at"))
    held = {1: 1, 95: 1} if choice == "release" else {}
    assert rows.in_sink() == {**held, 3: 1, 4: 1}
    rows.land(5)
    rows.until_drained()
    assert rows.in_sink() == {**held, 3: 1, 4: 1, 5: 1}
