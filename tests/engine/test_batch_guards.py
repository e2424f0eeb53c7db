"""What keeps a batch and its account together: late rows, a run that is given up, rows of the quarantine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from drawdown.drain.attempt import Attempt
from drawdown.drain.batch_step import EPOCH
from drawdown.drain.drain import Drain, drain
from drawdown.drain.planning import pending_replays
from drawdown.drain.run_context import RunContext
from drawdown.errors import DrawdownError, RefusedError
from drawdown.quality.audit import GxAuditor
from drawdown.rows.quarantine_staging import JudgedBatch, stage_rejected
from drawdown.rows.row_fates import BatchPlan, Boundary, Observed
from drawdown.sinks.delta.stage import DeltaSink
from drawdown.spec import load_pipeline
from drawdown.spec.scheduling.trigger import parse_trigger
from drawdown.workspace import Generation, Workspace
from tests.support.sandbox import Sandbox
from tests.support.set_aside import (
    CORRECTED,
    FILES,
    NAME,
    SPEC,
    closed,
    fill,
    land,
    replay,
    rows,
    states,
    write,
)

STUCK = DrawdownError("drain.stuck", "it was given up", where="here", do="run again")


@contextmanager
def dying(monkeypatch: pytest.MonkeyPatch, what: type, method: str) -> Iterator[None]:
    """In the block a run ends where it would do this, as if its process had died there."""

    def dies(*_: object, **__: object) -> Any:
        raise OSError("dead")

    with monkeypatch.context() as death:
        death.setattr(what, method, dies)
        yield


@pytest.mark.sampled
@pytest.mark.parametrize("publish", ["audited", "direct"])
def test_a_batch_that_a_dead_run_had_begun_takes_no_rows_of_the_quarantine(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, publish: str
) -> None:
    fill(sandbox)
    spec = (
        SPEC
        if publish == "audited"
        else SPEC.replace("schema: hourly.ddl", "schema: hourly.ddl, publish: direct")
    )
    sandbox.pipeline(NAME, spec, **FILES, quality_yaml=CORRECTED)
    land(sandbox, "c", "3,2024-01-01T10:15:00Z,1")
    with dying(monkeypatch, Drain, "_on_batch"):
        assert sandbox.drain(NAME)[0].error is not None
    before = states(sandbox)
    with pytest.raises(RefusedError) as refused:
        replay(sandbox)
    assert refused.value.id == "quarantine.unfinished"
    assert states(sandbox) == before
    assert before["95"] == "open"
    sandbox.run(NAME)
    assert replay(sandbox).counts.replayed == 2
    land(sandbox, "d", "4,2024-01-01T11:30:00Z,1")
    sandbox.run(NAME)
    assert closed(sandbox) == [(10, 5, 25)]


@pytest.mark.full
def test_rows_that_wait_for_their_batch_are_not_left_to_sparks_own_sink(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sandbox)
    write(sandbox, CORRECTED)
    with dying(monkeypatch, Drain, "run"), pytest.raises(DrawdownError):
        replay(sandbox)
    assert states(sandbox)["95"] == "replaying"
    pipeline = load_pipeline(sandbox.project, NAME)
    with sandbox.metastore() as metastore:
        generation = Generation.of(Workspace(sandbox.project, metastore), pipeline)
        with pytest.raises(RefusedError) as refused:
            pending_replays(generation, parse_trigger("continuous: 1 second"))
    assert refused.value.id == "quarantine.pending"
    assert states(sandbox)["95"] == "replaying"
    assert sandbox.run(NAME).counts.replayed == 2


def test_a_run_that_is_given_up_while_the_sink_writes_notes_no_batch(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """Its rows may be in the sink; what they are is for the next run to say, with the same token."""
    flag, given = tmp_path / "flag", tmp_path / "given"
    sandbox.pipeline(
        "out",
        """
sources:
  events: {format: json, path: landing/events, schema: events.ddl}
transform: transform.sql
sink: {format: foreach_batch, function: places.py}
""",
        events_ddl="id INT",
        transform_sql="SELECT id FROM events",
        places_py=f"""
def write(batch, token):
    with open({str(given)!r}, "a") as out:
        out.write(f"{{token}}: {{batch.count()}}\\n")
    open({str(flag)!r}, "w").close()
""",
    )
    sandbox.land_json("landing/events/a.json", [{"id": 1}])
    assert sandbox.spark is not None
    with sandbox.metastore() as metastore:
        workspace = Workspace(sandbox.project, metastore)
        context = RunContext("r1", "test", given_up=lambda: STUCK if flag.exists() else None)
        pipeline = load_pipeline(sandbox.project, "out")
        with pytest.raises(DrawdownError) as given_up:
            drain(Attempt(sandbox.spark, workspace, pipeline, GxAuditor(), context))
        assert given_up.value is STUCK
        assert metastore.batches("out", 1) == []
        [run] = metastore.runs("out")
        assert (run.state, run.counts.staged) == ("failed", 0)
    assert sandbox.run("out").counts.staged == 1
    assert given.read_text() == "out/1/0: 1\n" * 2


def test_late_rows_of_each_batch_are_counted_by_the_watermark_that_it_ran_with(sandbox: Sandbox) -> None:
    """A row exactly at the watermark is late; the watermark moves twice within the run."""
    sandbox.pipeline(
        "out",
        """
sources:
  events:
    format: json
    path: landing/events
    schema: events.ddl
    options: {maxFilesPerTrigger: 1}
    watermark: {column: at, delay: 1 minute}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: events.ddl}
""",
        events_ddl="at TIMESTAMP",
        transform_sql="SELECT at FROM events",
    )

    def land_times(name: int, *times: str) -> None:
        events = [{"at": f"2024-01-01T{each}Z"} for each in times]
        sandbox.land_json(f"landing/events/{name}.json", events, mtime=name)

    # Each batch is judged by the watermark that the one before it ran with (Spark's own rule).
    land_times(1, "12:01:00", "11:00:00")
    land_times(2, "12:00:00", "13:01:00")
    land_times(3, "12:00:00", "12:00:00.001", "11:59:59.999", "14:01:00")
    land_times(4, "13:00:00", "13:00:00.001", "12:00:00.001", "12:30:00")
    run = sandbox.run("out")
    land_times(5, "14:00:00", "14:00:00.001")
    again = sandbox.run("out")
    with sandbox.metastore() as metastore:
        late = [
            batch.by_source["events"]["late"] for batch in metastore.batches("out", 1) if batch.counts.read
        ]
    assert late == [0, 0, 2, 3, 1]
    assert (run.counts.late, again.counts.late) == (5, 1)
    assert run.counts.fed == 12, "without state every row is fed and written"


def test_rejected_rows_that_the_quarantine_has_are_not_staged_again(sandbox: Sandbox) -> None:
    """Of a batch that is repeated after its rows were shown: the second read, too, is spared."""
    fill(sandbox)
    pipeline = load_pipeline(sandbox.project, NAME)
    boundary = Boundary("events", pipeline.sources["events"], pipeline.rules_of("events"), None, None)
    observed = replace(Observed.nothing(["small"]), read=3, quarantined=3)
    quarantine = DeltaSink.quarantine(sandbox.project, pipeline)
    [batch_id] = {row.batch_id for row in rows(sandbox)}
    batch = JudgedBatch(
        cast(BatchPlan, None),  # asked for nothing
        {"events": boundary},
        {"events": observed},
        late={"events": 0},
        watermark=EPOCH,
        generation=1,
        batch_id=batch_id,
        run_id="r1",
        planned_at=EPOCH,
    )
    assert stage_rejected(batch, quarantine) == []
