"""TRIG: triggers of a watch, and one checkpoint under several of them."""

from __future__ import annotations

import pytest

from tests.conformance.test_triggers import hour
from tests.support.sandbox import Sandbox
from tests.support.timed import A_FILE_A_BATCH, HOURLY_FILES, rows_at
from tests.support.watching import watching


@pytest.mark.sampled
@pytest.mark.conformance("TRIG-03")
@pytest.mark.parametrize("trigger", ["default", "1 second"])
def test_a_watch_publishes_each_batch_and_a_drain_goes_on_behind_it(sandbox: Sandbox, trigger: str) -> None:
    sandbox.pipeline("hourly", A_FILE_A_BATCH, **HOURLY_FILES)
    sandbox.land_json("landing/events/1.json", rows_at("10:00:00", "11:30:00"), mtime=1)
    with watching(sandbox, "hourly", trigger) as watched:
        watched.until(lambda: (sandbox.storage / "tables/out/_delta_log").exists())
        watched.until(lambda: sandbox.delta("tables/out") == [(hour(10), 1)])
        # While it waits for more, more comes; the window of 11 is in its state.
        sandbox.land_json("landing/events/2.json", rows_at("11:45:00", "13:00:00"), mtime=2)
        watched.until(lambda: len(sandbox.delta("tables/out")) == 2)
    assert (watched.run.kind, watched.run.state) == ("watch", "stopped")
    assert (watched.run.counts.read, watched.run.counts.published, watched.run.verdict) == (4, 2, "pass")

    sandbox.land_json("landing/events/3.json", rows_at("13:30:00", "14:30:00"), mtime=3)
    drained = sandbox.run("hourly")
    assert (drained.kind, drained.counts.read) == ("drain", 2)
    assert sandbox.delta("tables/out") == [(hour(10), 1), (hour(11), 2), (hour(13), 2)]

    with watching(sandbox, "hourly", trigger) as again:
        sandbox.land_json("landing/events/4.json", rows_at("16:00:00"), mtime=4)
        again.until(lambda: len(sandbox.delta("tables/out")) == 4)
    assert again.run.counts.read == 1
    assert sandbox.delta("tables/out")[-1] == (hour(14), 1)
