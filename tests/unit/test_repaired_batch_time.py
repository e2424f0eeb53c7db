"""An offsets file that is written again keeps the time by which replayed rows are let in."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from drawdown.checkpoint import CheckpointFault
from drawdown.metastore.records import Batch, QuarantineDecision
from drawdown.recovery.repair.fixes import Fixes
from drawdown.spec import load_pipeline
from drawdown.workspace import Generation, Workspace
from tests.support.sandbox import Sandbox

NAME = "words"
PATH = f"_drawdown/{NAME}/checkpoint-1"
SPEC = """
sources: {words: {format: text, path: in}}
transform: transform.sql
sink: {format: console}
"""
PLANNED = 1_700_000_000_123


def test_the_time_of_a_batch_that_takes_replayed_rows_is_the_one_that_was_decided(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.pipeline(NAME, SPEC, transform_sql="SELECT value FROM words", words_ddl="value STRING")
    metadata = '{"batchWatermarkMs":0,"batchTimestampMs":5,"conf":{}}'
    files = {"offsets/0": f'{metadata}\n{{"logOffset":0}}', "offsets/1": "to", "commits/0": "{}"}
    for name, text in files.items():
        file = sandbox.storage / PATH / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"v1\n{text}")
    with sandbox.metastore() as metastore:
        lease = metastore.acquire(NAME, "test", "r1", timedelta(minutes=5))
        metastore.create_checkpoint(lease, 1, PATH, {})
        metastore.note_batch(
            lease, Batch(NAME, 1, 1, "r1", lease.epoch, offsets_to=[{"logOffset": 0}]), [], {}
        )
        decision = QuarantineDecision("d1", NAME, "replay", 1, 5, "keys", batch_id=1, planned_ms=PLANNED)
        metastore.note_decision(lease, decision)
        generation = Generation.of(
            Workspace(sandbox.project, metastore), load_pipeline(sandbox.project, NAME)
        )
        path = f"{PATH}/offsets/1"
        fix = Fixes(generation).of(CheckpointFault("offsets", "torn", path, "it is torn", True, 1))
    assert fix is not None
    assert json.loads(fix.write[path].split(b"\n")[1])["batchTimestampMs"] == PLANNED
