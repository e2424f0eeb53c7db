"""A publish asks for its lease when its target does, right before it commits, and marks its last batch."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from drawdown.changes.protocol import Commit, Staged
from drawdown.errors import RefusedError
from drawdown.metastore.records import Batch, StagedFile
from drawdown.publishing import publish
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox

SPEC = """
sources: {events: {format: json, path: landing, schema: events.ddl}}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: events.ddl, publish: direct}
"""
MINUTE = timedelta(seconds=60)


class Slow:
    """A target during whose work something happens."""

    based_on = None

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = meanwhile
        self.committed: list[int] = []
        self.marked: list[int] = []

    def published_batch(self, app_id: str) -> int:
        return -1

    def make_visible(self, staged: Staged, commit: Commit) -> None:
        self._meanwhile()
        commit.still_ours()
        self.committed += staged.batch_ids
        self.marked.append(commit.version)


def test_a_lease_that_is_taken_during_a_publish_ends_it_before_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = Sandbox(tmp_path / "project")
    pipeline = sandbox.pipeline("out", SPEC, events_ddl="at TIMESTAMP", transform_sql="SELECT at FROM events")
    with sandbox.metastore() as metastore:
        lease = metastore.acquire("out", "host pid 1", "r1", MINUTE)
        metastore.create_checkpoint(lease, 1, "_drawdown/out/checkpoint-1", {})
        batch = Batch("out", 1, 0, "r1", lease.epoch)
        metastore.note_batch(lease, batch, [StagedFile("output", "/staged/0.parquet", 1, 1, {})], {})

        def publish_while(meanwhile: Callable[[], object]) -> list[int]:
            target = Slow(meanwhile)
            monkeypatch.setattr(publish, "target_of", lambda *_: target)
            try:
                publish.publish_batch(Workspace(sandbox.project, metastore), lease, pipeline, batch)
            finally:
                committed.extend(target.committed)
            return target.committed

        def take() -> None:
            metastore.release(lease)
            metastore.acquire("out", "host pid 2", "r2", MINUTE)

        committed: list[int] = []
        assert publish_while(lambda: None) == [0]
        with pytest.raises(RefusedError, match="host pid 2") as refused:
            publish_while(take)
        assert refused.value.id == "lease.lost"
        assert committed == [0], "once, while the lease was ours"


def test_a_commit_is_marked_with_its_last_batch_and_never_with_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = Sandbox(tmp_path / "project")
    pipeline = sandbox.pipeline("out", SPEC, events_ddl="at TIMESTAMP", transform_sql="SELECT at FROM events")
    with sandbox.metastore() as metastore:
        lease = metastore.acquire("out", "host pid 1", "r1", MINUTE)
        metastore.create_checkpoint(lease, 1, "_drawdown/out/checkpoint-1", {})
        target = Slow(lambda: None)
        monkeypatch.setattr(publish, "target_of", lambda *_: target)
        for number in (0, 1):
            batch = Batch("out", 1, number, "r1", lease.epoch)
            staged = StagedFile("output", f"/staged/{number}.parquet", 1, 1, {})
            metastore.note_batch(lease, batch, [staged], {})
            publish.publish_batch(Workspace(sandbox.project, metastore), lease, pipeline, batch)
        assert target.marked == [0, 1], "a sink that adds rows would take the last batch a second time"
        monkeypatch.setattr(target, "published_batch", lambda app_id: 5)
        with_later = Batch("out", 1, 6, "r1", lease.epoch)
        metastore.note_batch(lease, with_later, [StagedFile("output", "/staged/6.parquet", 1, 1, {})], {})
        publish.publish_batch(Workspace(sandbox.project, metastore), lease, pipeline, with_later)
        assert target.marked[-1] == 6
