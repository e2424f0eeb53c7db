"""TRIG: triggers of drains."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from drawdown.errors import SpecError
from drawdown.spec.scheduling.trigger import parse_trigger
from tests.support.refusals import refused_spec
from tests.support.sandbox import Sandbox
from tests.support.timed import A_FILE_A_BATCH, HOURLY_FILES, rows_at


def hour(hour: int) -> datetime:
    return datetime(2024, 1, 1, hour, tzinfo=UTC)


@pytest.mark.conformance("TRIG-01")
def test_available_now_advances_the_watermark_from_batch_to_batch(sandbox: Sandbox) -> None:
    sandbox.pipeline("hourly", A_FILE_A_BATCH, **HOURLY_FILES)
    waves = [("10:00:00", "10:30:00"), ("11:30:00",), ("12:30:00",), ("10:45:00", "14:00:00")]
    for i, times in enumerate(waves):
        sandbox.land_json(f"landing/events/{i}.json", rows_at(*times), mtime=i + 1)
    first = sandbox.run("hourly")
    marks = [entry["watermark"] for entry in first.progress]
    # Each batch runs with the watermark that the batches before it have shown; the last has no data.
    assert [mark and mark[11:16] for mark in marks] == [None, "10:20", "11:20", "12:20", "13:50"]
    assert (first.watermark, first.stop_reason) == (datetime(2024, 1, 1, 13, 50, tzinfo=UTC), "drained")
    # 10:45 came behind the batch that closed the window of 10: one batch of all would have counted it.
    assert first.counts.late == 1
    assert sandbox.delta("tables/out") == [(hour(10), 2), (hour(11), 1), (hour(12), 1)]

    sandbox.land_json("landing/events/9.json", rows_at("14:10:00", "15:30:00"), mtime=9)
    second = sandbox.run("hourly")
    assert second.progress[0]["watermark"] == "2024-01-01T13:50:00.000Z"
    assert sandbox.delta("tables/out")[3:] == [(hour(14), 2)]


@pytest.mark.full
@pytest.mark.conformance("TRIG-02")
def test_the_deprecated_trigger_is_answered_with_available_now(sandbox: Sandbox) -> None:
    spec = A_FILE_A_BATCH + "trigger: once\n"
    unknown = refused_spec(sandbox, "hourly", spec, "spec.unknown-key", **HOURLY_FILES)
    assert "trigger" in unknown.what
    sandbox.pipeline("hourly", A_FILE_A_BATCH, **HOURLY_FILES)
    for text in ("once", " once "):
        with pytest.raises(SpecError) as caught:
            parse_trigger(text)
        assert caught.value.id == "trigger.once"
        assert "deprecated" in caught.value.what
        assert "Available-now: `drawdown run`" in str(caught.value.do)
    # What it would have got wrong: one batch of both files, and the watermark only seen by the next run.
    sandbox.land_json("landing/events/1.json", rows_at("10:00:00"), mtime=1)
    sandbox.land_json("landing/events/2.json", rows_at("12:00:00"), mtime=2)
    assert len(sandbox.run("hourly").progress) == 3
    assert sandbox.delta("tables/out") == [(hour(10), 1)]
    sandbox.land_json("landing/events/3.json", rows_at("14:00:00"), mtime=3)
    sandbox.run("hourly")
    assert sandbox.delta("tables/out") == [(hour(10), 1), (hour(12), 1)]


@pytest.mark.sampled
@pytest.mark.conformance("TRIG-07")
@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        ("max_batches: 2", "bound of 2 batches reached"),
        ("max_duration: 1 millisecond", "bound of 1 millisecond reached"),
    ],
)
def test_a_bounded_drain_says_what_is_left_and_the_next_goes_on(
    sandbox: Sandbox, bound: str, reason: str
) -> None:
    spec = f"{A_FILE_A_BATCH}drain: {{{bound}}}\n"
    sandbox.pipeline("hourly", spec, **HOURLY_FILES)
    for i in range(4):
        sandbox.land_json(f"landing/events/{i}.json", rows_at(f"1{i}:00:00", f"1{i}:30:00"), mtime=i + 1)
    read = 0
    while read < 8:
        run = sandbox.run("hourly")
        assert run.counts.read > 0
        read += run.counts.read
        if read < 8:
            assert run.stop_reason == f"{reason}; left for the next run: events {4 - read // 2} files"
        assert run.state == "succeeded"
    assert sandbox.delta("tables/out") == [(hour(10), 2), (hour(11), 2), (hour(12), 2)]
    with sandbox.metastore() as metastore:
        assert len(metastore.runs("hourly")) == (2 if "batches" in bound else 4)
