"""When an interval is closed, and which staged files may hold rows of it; without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from drawdown.errors import RefusedError
from drawdown.metastore.records import Batch, Checkpoint, HeldSlice, StagedFile, Verdict
from drawdown.replay.plan import refuse_open
from drawdown.replay.publish import _may_hold
from drawdown.sources.committed_offsets import CommittedOffsets
from drawdown.sources.replay_basis import ReplayBasis
from drawdown.spec import Pipeline
from drawdown.values.interval import Interval
from tests.support.sandbox import Sandbox
from tests.unit.test_replay_basis import SPEC

DAY = Interval.parse("2024-01-01", "2024-01-02")
MIDNIGHT = datetime(2024, 1, 2, tzinfo=UTC)


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    spec = SPEC.replace("interval: 1 day", "interval: 1 day, lookahead: 2 hours")
    sandbox = Sandbox(tmp_path / "project")
    return sandbox.pipeline("ahead", spec, events_ddl="at TIMESTAMP", transform_sql="SELECT at FROM events")


def _basis(closed: datetime) -> ReplayBasis:
    checkpoint = Checkpoint("ahead", 1, "_drawdown/ahead/checkpoint-1", None, {}, MIDNIGHT)
    return ReplayBasis(checkpoint, Batch("ahead", 1, 0, "r1", 1), CommittedOffsets(), closed)


def test_an_interval_is_open_until_the_watermark_has_passed_its_lookahead(pipeline: Pipeline) -> None:
    closed = MIDNIGHT + timedelta(hours=2)
    with pytest.raises(RefusedError, match="closed when it reaches 2024-01-02 02:00:00 UTC") as refused:
        refuse_open(pipeline, DAY, _basis(closed - timedelta(microseconds=1)))
    assert refused.value.id == "replay.open"
    refuse_open(pipeline, DAY, _basis(closed))


def test_while_a_slice_is_held_a_refusal_names_it_and_how_it_is_decided(pipeline: Pipeline) -> None:
    batches = tuple(Batch("ahead", 1, number, "r2", 1, status="held") for number in (1, 2))
    held = HeldSlice(Verdict("ahead", 1, "r2", 1, 2, "fail"), batches)
    basis = replace(_basis(MIDNIGHT), held=[held])
    with pytest.raises(RefusedError, match=r"ahead \(batches 1 to 2\) is held, and the watermark") as refused:
        refuse_open(pipeline, DAY, basis)
    assert "`drawdown release ahead --why ...` or `drawdown discard ahead --why ...`" in refused.value.do
    assert "drawdown run" not in refused.value.do


@pytest.mark.parametrize(
    ("least", "most", "may"),
    [
        ("2023-12-31T10:00:00.000Z", "2023-12-31T23:59:59.998Z", False),
        # Delta cuts times to milliseconds: the row may be one of 00:00:00.0005.
        ("2023-12-31T10:00:00.000Z", "2024-01-01T00:00:00.000Z", True),
        ("2023-12-31T10:00:00.000Z", "2023-12-31T23:59:59.999Z", True),
        ("2024-01-01T23:59:59.999Z", "2024-01-03T00:00:00.000Z", True),
        ("2024-01-02T00:00:00.000Z", "2024-01-03T00:00:00.000Z", False),
    ],
)
def test_a_file_whose_times_may_touch_an_interval_may_hold_its_rows(least: str, most: str, may: bool) -> None:
    stats = {"minValues": {"at": least}, "maxValues": {"at": most}, "nullCount": {"at": 0}}
    file = StagedFile("output", "/tables/out/1.parquet", 1, 3, {"stats": json.dumps(stats)})
    assert _may_hold(file, "at", DAY) is may
    assert _may_hold(replace(file, action={}), "at", DAY), "without statistics"
