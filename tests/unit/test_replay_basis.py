"""What a replay stands on, by what the metastore has noted; without Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from drawdown.cli.main import app
from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import RefusedError, SpecError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Lease
from drawdown.replay.plan import basis_at
from drawdown.replay.publish import possible_until
from drawdown.spec import Duration, Pipeline
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox
from tests.unit.test_held_page import SCHEMA

SPEC = """
sources: {events: {format: json, path: landing, schema: events.ddl}}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: events.ddl, time_column: at}
replay: {interval: 1 day}
"""


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path / "project")


@pytest.fixture
def pipeline(sandbox: Sandbox) -> Pipeline:
    sql = "SELECT a.at FROM events a JOIN events b ON a.at = b.at"
    return sandbox.pipeline("twice", SPEC, events_ddl="at TIMESTAMP", transform_sql=sql)


def test_readings_of_one_source_that_are_not_equally_far_are_refused(
    sandbox: Sandbox, pipeline: Pipeline
) -> None:
    """A file that came between the two listings of a batch is in the second one only."""
    with sandbox.metastore() as metastore:
        lease = metastore.acquire("twice", "host pid 1", "r1", timedelta(seconds=60))
        noted = _noted(metastore, lease)
        checkpoint = metastore.active_checkpoint("twice")
        assert basis_at(Workspace(sandbox.project, metastore), pipeline, checkpoint, 0).batch.batch_id == 0
        metastore.note_batch(lease, replace(noted, offsets_to=[{"logOffset": 0}, {"logOffset": 1}]), [], {})
        with pytest.raises(RefusedError, match="reads events several times, and after batch 0") as refused:
            basis_at(Workspace(sandbox.project, metastore), pipeline, checkpoint, 0)
    assert refused.value.id == "replay.uneven"
    assert refused.value.do == "drawdown run twice"


def test_until_when_intervals_can_be_replayed_is_known_without_spark(
    sandbox: Sandbox, pipeline: Pipeline
) -> None:
    with sandbox.metastore() as metastore:
        workspace = Workspace(sandbox.project, metastore)
        with pytest.raises(RefusedError) as refused:
            possible_until(workspace, pipeline)
        assert refused.value.id == "replay.nothing-visible"
        table = sandbox.storage / "tables/out"
        table.mkdir(parents=True)
        DeltaTableFiles(str(table)).create(SCHEMA, [], "")
        lease = metastore.acquire("twice", "host pid 1", "r1", timedelta(seconds=60))
        metastore.note_batch(lease, replace(_noted(metastore, lease), status="published"), [], {})
        lookahead = Duration.parse("2 hours")
        assert pipeline.replay is not None
        ahead = pipeline.model_copy(
            update={"replay": pipeline.replay.model_copy(update={"lookahead": lookahead})}
        )
        until = possible_until(workspace, ahead)
        assert timedelta(0) <= metastore.now() - lookahead.delta - until < timedelta(minutes=1)


def test_one_end_of_a_span_is_not_enough(sandbox: Sandbox, pipeline: Pipeline) -> None:
    answer = CliRunner().invoke(
        app, ["backfill", "twice", "--from", "2024-01-01"], env={"DRAWDOWN_PROJECT": str(sandbox.root)}
    )
    assert isinstance(answer.exception, SpecError)
    assert answer.exception.id == "replay.interval"
    assert answer.exception.do == "`drawdown backfill twice` says which intervals are possible now"


def _noted(metastore: Metastore, lease: Lease) -> Batch:
    order = {"source_order": ["events", "events@1"]}
    metastore.create_checkpoint(lease, 0, "_drawdown/twice/checkpoint-0", order)
    noted = Batch("twice", 0, 0, "r1", lease.epoch, offsets_to=[{"logOffset": 0}, {"logOffset": 0}])
    metastore.note_batch(lease, noted, [], {})
    return noted
