"""A rule is edited between two attempts at a batch whose rows the sink has: each row is in one place."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.command_line import drawdown
from tests.support.deaths import die
from tests.support.row_by_row import NAME, SINKS, Rows
from tests.support.verdicts import warnings

ALWAYS = ("delta append", "foreach_batch")
LOOSENED, TIGHTENED = (90, 100), (100, 90)


@pytest.fixture
def rows(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Rows:
    kind = request.param
    server = SINKS[kind].server
    return Rows(kind, tmp_path / "project", spark, request.getfixturevalue(server) if server else None)


# Where the sink has the rows and Spark's commit log lacks the batch.
HELD = {"delta append": "batch.show", "delta update": "batch.show", "postgres": "batch.show"}


@pytest.mark.capability("RIGHT-02")
@pytest.mark.parametrize("limits", [LOOSENED, TIGHTENED], ids=["loosened", "tightened"])
@pytest.mark.parametrize(
    "rows",
    [kind if kind in ALWAYS else pytest.param(kind, marks=pytest.mark.full) for kind in SINKS],
    indirect=True,
)
def test_a_batch_that_the_sink_has_keeps_the_rules_it_was_begun_under(
    rows: Rows, limits: tuple[int, int], request: pytest.FixtureRequest
) -> None:
    kind = request.node.callspec.params["rows"]
    before, now = limits
    rows.rule(before)
    rows.land(1, 95)
    die(rows.sandbox, NAME, f"after {HELD.get(kind, 'batch.note' if kind == 'kafka' else 'batch.stage')} 1")
    rows.land(2, 96)
    rows.rule(now)
    assert "the next run only finishes this batch" in warnings(rows.sandbox, NAME)["rules.postponed"].what
    rows.until_drained()
    passed, kept_out = (95, 96) if before > now else (96, 95)
    assert rows.in_sink() == {1: 1, 2: 1, passed: 1}
    assert rows.set_aside() == {kept_out: 1}
    assert "rules.postponed" not in warnings(rows.sandbox, NAME)


@pytest.mark.capability("RIGHT-02")
@pytest.mark.parametrize(
    "rows",
    [kind if kind in ALWAYS else pytest.param(kind, marks=pytest.mark.full) for kind in SINKS],
    indirect=True,
)
def test_no_replay_joins_a_batch_that_the_sink_has(rows: Rows, request: pytest.FixtureRequest) -> None:
    """It is planned, not noted: with other rows under its token, those of the replay would be lost."""
    kind = request.node.callspec.params["rows"]
    rows.rule(90)
    rows.land(1, 95)
    rows.until_drained()
    rows.land(2)
    die(rows.sandbox, NAME, f"after {HELD.get(kind, 'batch.note' if kind == 'kafka' else 'batch.stage')} 1")
    rows.rule(100)
    words = ["quarantine", "replay", NAME, "--why", "the rule was wrong"]
    done = drawdown(rows.sandbox.root, *words)
    assert "quarantine.unfinished" in done.stderr + done.stdout
    assert rows.set_aside() == {95: 1}
    rows.until_drained()
    done = drawdown(rows.sandbox.root, *words)
    assert done.returncode == 0, done.stderr + done.stdout
    rows.until_drained()
    assert rows.in_sink() == {1: 1, 2: 1, 95: 1}
