"""A storage root that was copied elsewhere: nothing is read again, and one command notes the new place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.command_line import drawdown
from tests.support.rebuilds import Hourly, event, sums
from tests.support.recovering import NAME, checkpoint, fix, goes_on_like, land, project, refused, result
from tests.support.sandbox import Sandbox

FAILING = "expectations: [{type: expect_table_row_count_to_equal, kwargs: {value: -1}}]\n"
PLACE = "another-place-é"


def move(sandbox: Sandbox) -> Path:
    """Copy the storage without the times of its files, and let the project use the copy."""
    old = sandbox.storage
    sandbox.storage = sandbox.root / PLACE
    shutil.copytree(old, sandbox.storage, copy_function=shutil.copyfile)
    settings = sandbox.root / "include" / "project.yaml"
    settings.write_text(settings.read_text().replace("storage_root: storage", f"storage_root: {PLACE}"))
    shutil.rmtree(old / "landing")
    return old


@pytest.mark.full
@pytest.mark.parametrize(
    "sink",
    [
        pytest.param("delta", marks=pytest.mark.fault("F17", "delta")),
        pytest.param("parquet", marks=[pytest.mark.fault("F17", "files"), pytest.mark.full]),
    ],
)
def test_a_storage_in_another_place_is_refused_until_its_files_are_named_there(
    tmp_path: Path, spark: SparkSession, sink: str
) -> None:
    control = project(tmp_path / "control", spark, sink)
    sandbox = project(tmp_path / "project", spark, sink)
    for wave in (0, 1):
        for each in (control, sandbox):
            land(each, wave)
            each.run(NAME)
    old = move(sandbox)
    before = sandbox.snapshot()

    error = refused(sandbox, "storage.moved")
    assert sandbox.snapshot() == before
    assert error.do.endswith(f"`drawdown checkpoint move {NAME} --from {old}`")
    plan = drawdown(sandbox.root, "plan", NAME, "--json")
    assert (plan.returncode, "storage.moved" in plan.stdout) == (3, True)
    fix(sandbox, error.do)
    checkpoint(sandbox, "verify")
    again = sandbox.drain(NAME)[0]
    assert (again.run, again.error) == (None, None), "nothing is new, and nothing was rewritten"

    for each in (control, sandbox):
        land(each, 2)
    control.run(NAME)
    goes_on_like(sandbox, result(control))
    with sandbox.metastore() as metastore:
        last = metastore.runs(NAME)[0]
    assert (last.counts.read, last.notices) == (10, [])


@pytest.mark.fault("F17", "delta")
def test_rows_that_wait_for_a_decision_move_along(tmp_path: Path, spark: SparkSession) -> None:
    sandbox = project(tmp_path / "project", spark, "delta")
    quality = sandbox.root / "include" / "pipelines" / NAME / "quality.yaml"
    quality.write_text(FAILING)
    land(sandbox, 0)
    land(sandbox, 1)
    assert sandbox.drain(NAME)[0].error is not None
    old = move(sandbox)
    table = sandbox.storage / "tables" / "hourly"
    aside = table.rename(table.with_name("aside"))
    missing = checkpoint(sandbox, "move", "--from", str(old), code=3)
    assert "move.not-copied" in missing.stderr
    aside.rename(table)
    checkpoint(sandbox, "move", "--from", str(old))
    nothing = checkpoint(sandbox, "move", "--from", str(old), code=3)
    assert "move.nothing" in nothing.stderr
    shutil.rmtree(old)
    released = drawdown(sandbox.root, "release", NAME, "--why", "a test")
    assert released.returncode == 0, released.stderr
    assert len(sandbox.delta("tables/hourly")) > 0


@pytest.mark.fault("F17", "delta")
@pytest.mark.full
def test_a_rebuild_moves_along(hourly: Hourly) -> None:
    events = [event("02T06:10", 1), event("02T07:10", 2), event("02T08:10", 4)]
    hourly.live_version()
    hourly.arrive_and_run(0, events)
    hourly.next_version()
    assert hourly.rebuilt().counts.read == len(events)
    old = move(hourly)
    checkpoint(hourly, "move", "--from", str(old))
    events.append(event("02T09:10", 8))
    hourly.arrive(1, events[3:])
    assert hourly.rebuilt().counts.read == 1
    hourly.end("approve")
    assert hourly.rows() == sums(events, until="02T09")
