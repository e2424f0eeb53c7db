"""`drawdown.Project` over a session that the caller has, as a notebook does."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import drawdown
from drawdown.drain.failures import of_run
from drawdown.plan.fingerprint import spec_fingerprint
from drawdown.spec import load_next
from drawdown.workspace import Workspace
from tests.support.replays import DAYS, FIRST, drain_days
from tests.support.sandbox import Sandbox

COPIED = """
sources:
  events: {format: json, path: landing/old, schema: events.ddl}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: events.ddl}
"""


def test_a_pipeline_is_replayed_planned_and_looked_at_in_the_callers_session(sandbox: Sandbox) -> None:
    expected = drain_days(sandbox)
    hourly = drawdown.Project.load(sandbox.root, spark=sandbox.spark).pipeline("hourly")
    assert not hourly.preflight().work
    start = datetime(2024, 1, 1)
    [run] = hourly.replay(start, start + timedelta(days=1))
    assert (run.kind, run.state) == ("replay", "succeeded")
    first_day = FIRST + timedelta(days=1)
    found = {(hour, k): total for hour, k, total in sandbox.delta("tables/hourly") if hour < first_day}
    assert found == {key: total for key, total in expected.items() if key[0] < first_day}
    assert not hourly.plan().refused
    assert sandbox.spark is not None
    assert sandbox.spark.range(1).count() == 1, "the session is left running"
    with pytest.raises(drawdown.RefusedError) as refused:
        hourly.replay(start + timedelta(days=DAYS), start + timedelta(days=DAYS + 1))
    assert refused.value.id == "replay.open"


def test_what_waits_is_asked_of_the_version_in_use(tmp_path: Path) -> None:
    """After a rebuild was swapped in, that is the one in `next/`."""
    sandbox = Sandbox(tmp_path / "project")
    pipeline = sandbox.pipeline("out", COPIED, events_ddl="id BIGINT", transform_sql="SELECT * FROM events")
    following = shutil.copytree(pipeline.folder, pipeline.folder / "next")
    (following / "pipeline.yaml").write_text(COPIED.replace("landing/old", "landing/new"))
    (sandbox.storage / "landing" / "old").mkdir(parents=True)
    sandbox.land_json("landing/new/a.json", [{"id": 1}])
    swapped = load_next(sandbox.project, "out")
    assert swapped is not None
    with sandbox.metastore() as metastore:
        lease = metastore.acquire("out", "a test", "run", timedelta(minutes=1))
        metastore.create_checkpoint(lease, 1, "_drawdown/out/checkpoint-1", spec_fingerprint(swapped))
        metastore.change_generations(lease, {1: {"rebuild": {"from_next": True}}})
        metastore.release(lease)
    found = drawdown.Project.load(sandbox.root).pipeline("out").preflight()
    assert found.backlog["events"]["files"] == 1


def test_a_bug_is_an_error_with_its_class_and_first_line(sandbox: Sandbox) -> None:
    pipeline = sandbox.pipeline("out", COPIED, events_ddl="id BIGINT", transform_sql="SELECT * FROM events")
    assert sandbox.spark is not None
    with sandbox.metastore() as metastore:
        bug = KeyError("no such thing\nand more")
        error = of_run(sandbox.spark, Workspace(sandbox.project, metastore), pipeline, bug)
    assert (error.id, error.what) == ("drain.unexpected", "KeyError: 'no such thing\\nand more'")
