"""`drawdown runs --prometheus`: the gauges of a pipeline, whatever its last runs were."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from drawdown.metastore.records import Counts, Run, RunState
from tests.support.command_line import drawdown
from tests.support.sandbox import Sandbox

AT = datetime(2024, 1, 1, tzinfo=UTC)
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: events.ddl}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: events.ddl}
"""


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    sandbox = Sandbox(tmp_path / "project")
    sandbox.pipeline("hourly", SPEC, events_ddl="id INT", transform_sql="SELECT id FROM events")
    return sandbox


def past(sandbox: Sandbox, *ended: tuple[str, RunState]) -> None:
    """Runs of these kinds that ended so; each drain that succeeded has read one row and knows a watermark."""
    with sandbox.metastore() as metastore:
        for number, (kind, state) in enumerate(ended):
            metastore.start_run(Run(f"r{number}", "hourly", kind=kind))
            known = {"counts": Counts(read=1, fed=1), "watermark": AT} if state == "succeeded" else {}
            metastore.finish_run(f"r{number}", state, **known)


def gauges(sandbox: Sandbox) -> dict[str, float]:
    done = drawdown(sandbox.root, "runs", "--prometheus")
    assert done.returncode == 0, done.stderr
    samples = [line.rpartition(" ") for line in done.stdout.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in samples}


def test_two_failed_runs_leave_the_watermark_and_the_last_success(sandbox: Sandbox) -> None:
    past(sandbox, ("drain", "succeeded"), ("drain", "failed"), ("drain", "crashed"))
    found = gauges(sandbox)
    assert found['drawdown_run_state{pipeline="hourly",state="crashed"}'] == 1
    assert found['drawdown_run_rows{pipeline="hourly",count="read"}'] == 0
    assert found['drawdown_watermark_seconds{pipeline="hourly"}'] == AT.timestamp()
    with sandbox.metastore() as metastore:
        run = metastore.run("r0")
    assert run is not None
    assert run.ended_at is not None
    last = found['drawdown_last_success_time_seconds{pipeline="hourly"}']
    assert last == pytest.approx(run.ended_at.timestamp(), abs=1e-3)


def test_what_reads_no_new_rows_is_not_the_newest_run(sandbox: Sandbox) -> None:
    others = ("upkeep", "upkeep", "quarantine-drop", "replay", "replay", "rebuild", "release", "rewind")
    past(sandbox, ("drain", "failed"), *[(kind, "succeeded") for kind in others])
    found = gauges(sandbox)
    assert found['drawdown_run_state{pipeline="hourly",state="failed"}'] == 1
    assert 'drawdown_watermark_seconds{pipeline="hourly"}' not in found
    assert 'drawdown_last_success_time_seconds{pipeline="hourly"}' not in found


def test_a_pipeline_that_never_ran_has_no_gauges(sandbox: Sandbox) -> None:
    assert gauges(sandbox) == {}
