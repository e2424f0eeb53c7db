"""What a replay stands on, by what the metastore has noted; without Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from drawdown.errors import RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Lease
from drawdown.replay.plan import basis_at
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox

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


def _noted(metastore: Metastore, lease: Lease) -> Batch:
    order = {"source_order": ["events", "events@1"]}
    metastore.create_checkpoint(lease, 0, "_drawdown/twice/checkpoint-0", order)
    noted = Batch("twice", 0, 0, "r1", lease.epoch, offsets_to=[{"logOffset": 0}, {"logOffset": 0}])
    metastore.note_batch(lease, noted, [], {})
    return noted
