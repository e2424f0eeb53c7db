"""Which batches an uncounted watch excuses, and `metastore.behind` for those that none does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from drawdown.checkpoint import CheckpointFiles
from drawdown.drain.uncounted import note_baseline
from drawdown.errors import RefusedError
from drawdown.metastore.operations.pruning import Retention, prune_records
from drawdown.metastore.records import UNCOUNTED, Batch, Lease, Run
from drawdown.recovery.repair.older_metastore import refuse_older_metastore
from drawdown.spec import load_pipeline
from drawdown.storage import Storage
from drawdown.workspace import Generation, Workspace
from tests.support.ageing import records_grow_old
from tests.support.sandbox import Sandbox

NAME = "words"
PATH = f"_drawdown/{NAME}/checkpoint-1"
SPEC = """
sources: {words: {format: text, path: in}}
transform: transform.sql
sink: {format: console}
"""
MANY = 130


class Line:
    """A pipeline whose checkpoint has two committed batches, of which the metastore knows the first."""

    def __init__(self, root: Path) -> None:
        sandbox = Sandbox(root)
        sandbox.pipeline(NAME, SPEC, transform_sql="SELECT value FROM words", words_ddl="value STRING")
        self.project = sandbox.project
        self.pipeline = load_pipeline(self.project, NAME)
        self.files = CheckpointFiles(Storage(sandbox.project.storage_root), PATH)
        for folder, text in {"offsets": '{"batchWatermarkMs":0}\n{"logOffset":0}', "commits": "{}"}.items():
            for batch_id in (0, 1):
                file = sandbox.storage / PATH / folder / str(batch_id)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f"v1\n{text}")
        self.metastore = sandbox.metastore()
        self.lease: Lease = self.metastore.acquire(NAME, "test", "r1", timedelta(minutes=5))
        self.metastore.create_checkpoint(self.lease, 1, PATH, {})
        self.run("first")
        batch = Batch(NAME, 1, 0, "first", self.lease.epoch, offsets_to=[{"logOffset": 0}])
        self.metastore.note_batch(self.lease, batch, [], {})

    def run(self, id: str, kind: str = "drain", origin: dict[str, str] | None = None) -> None:
        self.metastore.start_run(Run(id, NAME, kind=kind, generation=1, origin=origin or {}))
        self.metastore.finish_run(id, "succeeded")

    def look(self) -> None:
        refuse_older_metastore(self.generation)

    @property
    def generation(self) -> Generation:
        return Generation.of(Workspace(self.project, self.metastore), self.pipeline)


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    made = Line(tmp_path)
    yield made
    made.metastore.close()


def test_a_batch_that_nobody_noted_is_refused_and_nothing_changed(line: Line) -> None:
    with pytest.raises(RefusedError) as error:
        line.look()
    assert error.value.id == "metastore.behind"
    assert "Spark committed batch 1" in error.value.what
    assert [batch.batch_id for batch in line.metastore.batches(NAME, 1)] == [0]


def test_an_uncounted_watch_excuses_it_behind_any_number_of_later_runs(line: Line) -> None:
    line.run("watch", origin={UNCOUNTED: "continuous"})
    for number in range(MANY):
        line.run(f"replay-{number}", kind="replay")
    line.look()
    note_baseline(line.generation, line.lease)
    baseline = line.metastore.batch(NAME, 1, 1)
    assert baseline is not None
    assert (baseline.run_id, baseline.status) == ("watch", "published")
    assert line.metastore.uncounted_watch(NAME, 1) is None, "it has excused all that it can"


def test_a_watch_before_the_last_noted_batch_excuses_nothing(line: Line) -> None:
    line.run("watch", origin={UNCOUNTED: "continuous"})
    line.run("second")
    batch = Batch(NAME, 1, 0, "second", line.lease.epoch, offsets_to=[{"logOffset": 0}])
    line.metastore.note_batch(line.lease, batch, [], {})
    with pytest.raises(RefusedError, match=r"metastore\.behind"):
        line.look()


def test_pruning_keeps_the_watch_while_it_excuses_a_batch(line: Line) -> None:
    line.run("watch", origin={UNCOUNTED: "continuous"})
    for number in range(MANY):
        line.run(f"replay-{number}", kind="replay")
    records_grow_old(line.metastore, timedelta(days=365))
    removed = prune_records(line.metastore, line.lease, Retention(timedelta(days=30), {1: 0}))
    assert removed["runs"] > 0
    line.look()
