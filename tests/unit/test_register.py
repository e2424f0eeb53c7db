"""The register of changes: who is fenced, what is asked of the sink, what a dead holder's changes come to.

Real Delta tables and a real metastore; what Spark would have staged is written by pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from drawdown.changes.protocol import Commit, Staged, transaction_id
from drawdown.delta.table import DeltaTableFiles
from drawdown.drain.reconcile import refuse_unpublished
from drawdown.errors import RefusedError, SourceError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Change, Counts, Lease, StagedFile, Verdict
from drawdown.publishing import publish, publish_passed
from drawdown.publishing.clean_up import clean_up_changes
from drawdown.sinks.delta.publish import DeltaTarget
from drawdown.spec import Pipeline, load_pipeline
from drawdown.workspace import Generation, Workspace
from tests.support.sandbox import Sandbox

SPEC = """
sources: {{events: {{format: json, path: landing, schema: events.ddl}}}}
transform: transform.sql
sink: {{format: delta, path: tables/events, schema: events.ddl, {sink}}}
state: {{partitions: 2}}
"""
NAME = "events"
MINUTE = timedelta(minutes=1)
SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'


@dataclass
class Bench:
    """One pipeline with a table and a checkpoint, whose batches hold one row each: their id."""

    sandbox: Sandbox
    metastore: Metastore

    def __post_init__(self) -> None:
        self.project = self.sandbox.project
        self.lease = self.take("first")
        self.checkpoint = self.metastore.create_checkpoint(self.lease, 1, "_drawdown/events/checkpoint-1", {})
        self.folder = self.sandbox.storage / "tables/events"
        DeltaTableFiles(str(self.folder)).create(SCHEMA, [], "test")

    def take(self, run_id: str) -> Lease:
        return self.metastore.acquire(NAME, "host pid 1", run_id, MINUTE)

    def take_over(self) -> Lease:
        """A successor has the lease, and has closed what its predecessor left open."""
        self.metastore.release(self.lease)
        lease = self.take("second")
        clean_up_changes(Workspace(self.project, self.metastore), lease, self.pipeline)
        return lease

    def passes(self, *batch_ids: int) -> None:
        """Batches that are staged and have passed their audit."""
        for batch_id in batch_ids:
            self.metastore.note_batch(self.lease, self.batch(batch_id), [self.staged(batch_id)], {})
        self.metastore.mark_committed(self.lease, 1, max(batch_ids))
        self.metastore.record_verdict(
            self.lease, Verdict(NAME, 1, "first", min(batch_ids), max(batch_ids), "pass")
        )

    def batch(self, batch_id: int) -> Batch:
        return Batch(NAME, 1, batch_id, "first", 1, counts=Counts(read=1, fed=1, staged=1))

    def staged(self, batch_id: int, below: str = "data/first") -> StagedFile:
        path = self.folder / below / f"part-{batch_id}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": pa.array([batch_id], pa.int64())}), path)
        size = path.stat().st_size
        action = {"path": f"{below}/{path.name}", "size": size, "modificationTime": 0, "partitionValues": {}}
        return StagedFile("output", str(path), size, 1, action)

    def publish(self, lease: Lease | None = None) -> publish.Published:
        workspace = Workspace(self.project, self.metastore)
        return publish_passed(Generation(workspace, self.pipeline, self.checkpoint), lease or self.lease)

    @property
    def pipeline(self) -> Pipeline:
        return load_pipeline(self.project, NAME)

    @property
    def ids(self) -> list[int]:
        return sorted(row[0] for row in self.sandbox.delta("tables/events"))

    def statuses(self) -> list[str]:
        return [batch.status for batch in self.metastore.batches(NAME, 1)]


def bench_of(tmp_path: Path, sink: str) -> Bench:
    sandbox = Sandbox(tmp_path / "project")
    sandbox.pipeline(
        NAME, SPEC.format(sink=sink), events_ddl="id BIGINT", transform_sql="SELECT * FROM events"
    )
    return Bench(sandbox, sandbox.metastore())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return bench_of(tmp_path, "mode: append")


Step = Callable[[DeltaTarget, Staged, Commit], None]


def during_the_commit(monkeypatch: pytest.MonkeyPatch, step: Step) -> None:
    """`step` stands in for the next make_visible of a Delta table, once; the real one is given to it."""
    real = DeltaTarget.make_visible

    def once(target: DeltaTarget, staged: Staged, commit: Commit) -> None:
        monkeypatch.setattr(DeltaTarget, "make_visible", real)
        step(target, staged, commit)

    monkeypatch.setattr(DeltaTarget, "make_visible", once)


def test_a_holder_that_slept_in_its_commit_is_refused_by_the_table(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.passes(0, 1)
    taken: list[Lease] = []

    def sleeps(target: DeltaTarget, staged: Staged, commit: Commit) -> None:
        taken.append(bench.take_over())
        target.make_visible(staged, commit)

    during_the_commit(monkeypatch, sleeps)
    with pytest.raises(RefusedError) as lost:
        bench.publish()
    assert lost.value.id == "lease.lost"
    assert bench.ids == [], "nothing of the stale holder is visible, and nobody asked it to look before"
    assert bench.publish(taken[0]).rows == 2
    assert (bench.ids, bench.statuses()) == ([0, 1], ["published", "published"])
    assert bench.metastore.open_changes(NAME) == []


def test_a_commit_that_was_made_before_the_take_over_is_found_in_the_table(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.passes(0)
    taken: list[Lease] = []

    def dies_behind_it(target: DeltaTarget, staged: Staged, commit: Commit) -> None:
        target.make_visible(staged, commit)
        taken.append(bench.take_over())

    during_the_commit(monkeypatch, dies_behind_it)
    with pytest.raises(RefusedError):
        bench.publish()
    version = DeltaTable(str(bench.folder)).version()
    bench.publish(taken[0])
    assert (bench.ids, bench.statuses()) == ([0], ["published"])
    assert DeltaTable(str(bench.folder)).version() == version, "no fence was needed, and no second commit"


def test_while_a_table_is_written_other_pipelines_write_their_records(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.passes(0)
    monkeypatch.setattr("drawdown.metastore.connect.WAIT_SECONDS", 1)

    def takes_long(target: DeltaTarget, staged: Staged, commit: Commit) -> None:
        with Metastore.open(bench.project.metastore_url) as other:
            other.release(other.acquire("neighbour", "host pid 2", "n1", MINUTE))
            other.renew(bench.lease, MINUTE)
        target.make_visible(staged, commit)

    during_the_commit(monkeypatch, takes_long)
    assert bench.publish().rows == 1


def test_a_commit_whose_outcome_never_came_is_asked_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.passes(0)

    def answers_late(target: DeltaTarget, staged: Staged, commit: Commit) -> None:
        target.make_visible(staged, commit)
        raise SourceError("sink.unwritable", "timed out")

    during_the_commit(monkeypatch, answers_late)
    assert bench.publish().rows == 1
    assert (bench.ids, bench.statuses()) == ([0], ["published"])


def test_a_commit_that_failed_leaves_its_change_to_the_next_holder(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.passes(0)

    def fails(target: DeltaTarget, staged: Staged, commit: Commit) -> None:
        raise SourceError("sink.unwritable", "no space")

    during_the_commit(monkeypatch, fails)
    with pytest.raises(SourceError):
        bench.publish()
    [left] = bench.metastore.open_changes(NAME)
    assert (left.kind, left.scope, left.epoch) == ("publish", {"batches": [0]}, bench.lease.epoch)
    lease = bench.take_over()
    assert bench.metastore.open_changes(NAME) == []
    assert bench.publish(lease).rows == 1


def test_a_publish_that_another_commit_came_between_is_made_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.passes(0)

    def overtaken(target: DeltaTarget, staged: Staged, commit: Commit) -> None:
        DeltaTableFiles(str(bench.folder)).fence(bench.lease)
        target.make_visible(staged, commit)

    during_the_commit(monkeypatch, overtaken)
    assert bench.publish().rows == 1
    assert (bench.ids, bench.statuses()) == ([0], ["published"])


def test_a_table_that_others_change_all_the_time_is_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.passes(0)
    real = DeltaTarget.make_visible

    def always(target: DeltaTarget, staged: Staged, commit: Commit) -> None:
        DeltaTableFiles(str(bench.folder)).fence(bench.lease)
        real(target, staged, commit)

    monkeypatch.setattr(DeltaTarget, "make_visible", always)
    with pytest.raises(SourceError) as told:
        bench.publish()
    assert told.value.id == "sink.conflict"
    assert (bench.ids, bench.statuses()) == ([], ["passed"])


def test_a_snapshot_that_a_later_one_replaces_goes_behind_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = bench_of(tmp_path, "mode: complete")
    bench.passes(0, 1)
    files = [Path(file.path) for _, file in bench.metastore.staged_files(NAME, 1, [0, 1])]

    def fails(table: DeltaTableFiles, *args: object) -> None:
        raise SourceError("sink.unwritable", "no space")

    with monkeypatch.context() as patched:
        patched.setattr(DeltaTableFiles, "overwrite", fails)
        with pytest.raises(SourceError):
            bench.publish()
    assert all(file.exists() for file in files), "a rewind may make the first of them the last again"
    bench.publish()
    assert bench.ids == [1]
    assert [file.exists() for file in files] == [False, True]


def drains(bench: Bench) -> Change:
    """A run's change, with its place."""
    place = "tables/events/data/first"
    return bench.metastore.begin_change(
        bench.lease,
        Change("d1", NAME, "output", 1, "drain", "first", based_on=0, place=place),
    )


def test_of_a_dead_drain_only_what_it_wrote_and_nobody_names_is_removed(bench: Bench) -> None:
    drains(bench)
    bench.passes(0)
    unnoted = Path(bench.staged(7).path)
    # A replay that goes on writes its files into the table's own folder before it commits.
    replays = Path(bench.staged(8, ".").path)
    theirs = Path(bench.staged(9, "data/third").path)
    lease = bench.take_over()
    assert not unnoted.exists()
    assert replays.exists()
    assert theirs.exists()
    assert bench.publish(lease).rows == 1
    assert bench.ids == [0]


def test_what_the_table_names_stays_whatever_the_metastore_knows(bench: Bench) -> None:
    """An older copy of the metastore was restored: it knows the run as under way, and not its batch."""
    drains(bench)
    file = bench.staged(0)
    commit = Commit(
        "drawdown/events/1/output", 0, Change("c1", NAME, "output", 1, "publish", "first", NAME, 1)
    )
    DeltaTableFiles(str(bench.folder)).append([file], commit)
    bench.take_over()
    assert bench.ids == [0]


def test_the_log_of_a_table_tells_what_each_commit_was(bench: Bench) -> None:
    bench.passes(0, 1)
    bench.publish()
    [entry, _] = DeltaTable(str(bench.folder)).history()
    assert {
        name: entry[f"drawdown.{name}"] for name in ("pipeline", "kind", "generation", "scope", "run")
    } == {
        "pipeline": NAME,
        "kind": "publish",
        "generation": "1",
        "scope": '{"batches":[0,1]}',
        "run": "first",
    }


def test_what_waits_for_one_sink_goes_to_no_other(bench: Bench) -> None:
    """Another topic of a Kafka sink is an allowed change, but for rows that wait for the old one."""
    bench.passes(0)
    noted = replace(bench.checkpoint, fingerprint={"sink": "kafka old"})
    generation = Generation(Workspace(bench.project, bench.metastore), bench.pipeline, noted)
    with pytest.raises(RefusedError) as refused:
        refuse_unpublished(generation, "kafka new")
    assert refused.value.id == "sink.unpublished"
    assert "restore the old sink" in refused.value.do
    refuse_unpublished(generation, "kafka old")
    bench.publish()
    refuse_unpublished(generation, "kafka new")


@pytest.mark.parametrize("conflicts", [True, False])
def test_a_commit_that_came_right_before_the_fence_is_found(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, conflicts: bool
) -> None:
    """The successor has asked the sink once, and the holder who slept goes on before it is fenced.

    A Delta table says so, as a conflict; PostgreSQL does not.
    """
    bench.passes(0)
    taken: list[Lease] = []
    fence = DeltaTarget.fence

    def sleeps(target: DeltaTarget, staged: Staged, commit: Commit) -> None:
        def comes_too_late(own: DeltaTarget, lease: Lease) -> None:
            monkeypatch.setattr(DeltaTarget, "fence", fence)
            target.make_visible(staged, commit)
            (own if conflicts else replace(own, table=DeltaTableFiles(own.table.uri))).fence(lease)

        monkeypatch.setattr(DeltaTarget, "fence", comes_too_late)
        [change] = bench.metastore.open_changes(NAME)
        taken.append(bench.take_over())
        assert bench.metastore.states_of_changes([change.change_id]) == {change.change_id: "committed"}

    during_the_commit(monkeypatch, sleeps)
    with pytest.raises(RefusedError) as lost:
        bench.publish()
    assert lost.value.id == "lease.lost"
    bench.publish(taken[0])
    assert (bench.ids, bench.statuses()) == ([0], ["published"])


def test_only_changes_under_the_lease_that_was_taken_over_are_closed(bench: Bench) -> None:
    """What a rebuild or a replay has under way goes on beside drains that come and go."""
    shadow = bench.metastore.of_rebuilds
    beside = shadow.acquire(NAME, "host pid 2", "rebuild", MINUTE)
    change = Change("c1", NAME, "output", 1, "publish", "rebuild", scope={"batches": [0]}, based_on=0)
    shadow.begin_change(beside, change)
    lease = bench.take_over()
    assert lease.epoch > beside.epoch
    assert [each.change_id for each in bench.metastore.open_changes(NAME)] == ["c1"]


def test_what_became_of_a_change_is_written_once(bench: Bench) -> None:
    """A slow holder that gives up a change cannot undo that its successor found it in the sink."""
    change = Change("c1", NAME, "output", 1, "publish", "first")
    bench.metastore.begin_change(bench.lease, change)
    bench.metastore.end_changes(["c1"], "committed")
    bench.metastore.end_changes(["c1"], "given-up")
    assert bench.metastore.states_of_changes(["c1"]) == {"c1": "committed"}


def test_a_holder_closes_nothing_that_it_has_under_way_itself(bench: Bench) -> None:
    bench.metastore.begin_change(bench.lease, Change("c1", NAME, "output", 1, "publish", "first"))
    assert clean_up_changes(Workspace(bench.project, bench.metastore), bench.lease, bench.pipeline) == []
    assert [each.change_id for each in bench.metastore.open_changes(NAME)] == ["c1"]


def test_a_late_release_does_not_let_later_batches_come_again(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, "mode: append, publish: audited, ordered: false")
    for batch_id in (0, 1):
        bench.metastore.note_batch(bench.lease, bench.batch(batch_id), [bench.staged(batch_id)], {})
    bench.metastore.mark_committed(bench.lease, 1, 1)
    bench.metastore.record_verdict(bench.lease, Verdict(NAME, 1, "first", 0, 0, "fail"))
    bench.metastore.record_verdict(bench.lease, Verdict(NAME, 1, "first", 1, 1, "pass"))
    assert bench.publish().batch_ids == (1,)
    [held] = bench.metastore.held_slices(NAME)
    publish.publish_held(Workspace(bench.project, bench.metastore), bench.lease, bench.pipeline, held)
    assert bench.ids == [0, 1]
    table = DeltaTableFiles(str(bench.folder))
    assert table.published_version(transaction_id(NAME, 1, "output")) == 1
