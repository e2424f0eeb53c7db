"""A roll back below a stream is refused as soon as one batch was drained since the swap, and not before."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from drawdown.errors import RefusedError
from drawdown.metastore.records import Batch
from drawdown.rebuild import refusals as rebuild_refusals
from drawdown.rebuild.refusals import refuse_roll_back
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox

NAME = "events"
SPEC = """
sources: {events: {format: json, path: landing, schema: events.ddl}}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: events.ddl}
"""


def test_one_batch_that_was_drained_since_the_swap_is_one_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = Sandbox(tmp_path / "project")
    sandbox.pipeline(NAME, SPEC, events_ddl="id BIGINT", transform_sql="SELECT * FROM events")
    pipeline = load_pipeline(sandbox.project, NAME)
    # Who streams the table is told by checkpoints of Spark's (test_rebuild_readers.py).
    monkeypatch.setattr(rebuild_refusals, "readers_of", lambda *of: ["reader"])
    with sandbox.metastore() as metastore:
        lease = metastore.acquire(NAME, "host pid 1", "r1", timedelta(minutes=5))
        for number in (1, 2):
            path = f"_drawdown/{NAME}/checkpoint-{number}"
            metastore.create_checkpoint(lease, number, path, {})
            (sandbox.storage / path).mkdir(parents=True)
            (sandbox.storage / path / "metadata").write_text('{"id": "q"}')
            swapped = {"before": {"generation": 1}, "comparison": {"shadow_batch": 3}} if number == 2 else {}
            state = "live" if number == 2 else "retired"
            metastore.change_generations(lease, {number: {"state": state, "rebuild": swapped}})
        live = metastore.active_checkpoint(NAME)
        assert live is not None
        metastore.note_batch(lease, Batch(NAME, 2, 3, "r1", 1), [], {})
        assert refuse_roll_back(Workspace(sandbox.project, metastore), pipeline, live).generation == 1
        metastore.note_batch(lease, Batch(NAME, 2, 4, "r1", 1), [], {})
        with pytest.raises(RefusedError) as refused:
            refuse_roll_back(Workspace(sandbox.project, metastore), pipeline, live)
    assert refused.value.id == "rebuild.readers"
