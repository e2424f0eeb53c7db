"""Going back with the sink: exactly the batches that are wanted, of all tables or of none."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import CommitProperties

from drawdown.errors import AuditFailed, RefusedError
from drawdown.held.decide import Decision, decide
from drawdown.metastore import this_process
from drawdown.recovery.request import RecoveryRequest, as_run
from drawdown.recovery.restore import named_snapshot, restore
from drawdown.recovery.rewind import Rewound, rewind
from drawdown.recovery.snapshots import take_snapshot
from drawdown.spec import load_pipeline
from drawdown.workspace import Generation, Workspace
from tests.support.deaths import die
from tests.support.recovering import command_of
from tests.support.sandbox import Sandbox

NAME = "events"
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: events.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: events.ddl, publish: audited}
state: {partitions: 2}
"""
UNORDERED = SPEC.replace("publish: audited", "publish: audited, ordered: false")
READER = """
sources:
  events: {format: delta, path: tables/events, options: {skipChangeCommits: true}}
transform: transform.sql
sink: {format: delta, path: tables/read, schema: read.ddl}
state: {partitions: 2}
"""
ON_FILES = "format: parquet, path: tables/events, schema: read.ddl"
UP_TO_TEN = "expectations: [{type: expect_column_max_to_be_between, kwargs: {column: id, max_value: 10}}]\n"
POSITIVE = "rules: [{name: positive, check: id > 0, on_fail: quarantine}]\n"


def drained(sandbox: Sandbox, waves: list[list[int]], spec: str = SPEC, quality: str = UP_TO_TEN) -> None:
    """Each wave is a batch, and a run of its own."""
    sandbox.pipeline(
        NAME, spec, events_ddl="id INT", transform_sql="SELECT * FROM events", quality_yaml=quality
    )
    for number, wave in enumerate(waves):
        land(sandbox, number, wave)
        sandbox.drain(NAME)


def land(sandbox: Sandbox, number: int, wave: list[int]) -> None:
    sandbox.land_json(f"landing/events/{number}.json", [{"id": each} for each in wave], mtime=number + 1)


def rows(sandbox: Sandbox) -> list[int]:
    return [row[0] for row in sandbox.delta("tables/events")]


def set_aside(sandbox: Sandbox) -> list[int]:
    return sorted(json.loads(row["payload"])["id"] for row in sandbox.quarantined(NAME))


def released(sandbox: Sandbox) -> None:
    with sandbox.metastore() as metastore:
        decision = Decision("release", "r1", this_process(), "ada", "looked at")
        decide(Workspace(sandbox.project, metastore), load_pipeline(sandbox.project, NAME), decision)


def back(sandbox: Sandbox, to: int, run_id: str = "rewind-1", *, yes: bool = False) -> Rewound:
    """`drawdown checkpoint rewind events --to TO --sink`, or with --yes."""
    with sandbox.metastore() as metastore:
        generation = Generation.of(
            Workspace(sandbox.project, metastore), load_pipeline(sandbox.project, NAME)
        )
        request = RecoveryRequest("rewind", run_id, this_process(), "ada", "a test")
        return as_run(
            generation, request, lambda lease: rewind(generation, to, lease, sink=True, yes=yes), str
        )


def snapshot(sandbox: Sandbox) -> str:
    with sandbox.metastore() as metastore:
        generation = Generation.of(
            Workspace(sandbox.project, metastore), load_pipeline(sandbox.project, NAME)
        )
        request = RecoveryRequest("snapshot", "snapshot-1", this_process(), "ada", "a test")
        return as_run(generation, request, lambda lease: take_snapshot(generation, lease), str).name


def put_back(sandbox: Sandbox, name: str, *, sink: bool) -> None:
    with sandbox.metastore() as metastore:
        generation = Generation.of(
            Workspace(sandbox.project, metastore), load_pipeline(sandbox.project, NAME)
        )
        request = RecoveryRequest("restore", "restore-1", this_process(), "ada", "a test")
        chosen = named_snapshot(generation, name)
        as_run(generation, request, lambda lease: restore(generation, chosen, lease, sink=sink), str)


def refused(sandbox: Sandbox, error_id: str, work: Callable[[], object]) -> RefusedError:
    """What is refused, with nothing changed."""
    before = sandbox.everything()
    with pytest.raises(RefusedError) as error:
        work()
    assert error.value.id == error_id, str(error.value)
    assert sandbox.everything() == before
    return error.value


def test_a_slice_that_was_released_late_is_not_lost_by_going_back_to_a_batch_behind_it(
    sandbox: Sandbox,
) -> None:
    drained(sandbox, [[1], [98], [2], [3]], UNORDERED)
    taken = snapshot(sandbox)
    released(sandbox)
    land(sandbox, 4, [4])
    sandbox.run(NAME)
    assert rows(sandbox) == [1, 2, 3, 4, 98]
    error = refused(sandbox, "sink.between", lambda: back(sandbox, 2))
    assert command_of(error.do) == ["checkpoint", "rewind", NAME, "--to", "0", "--sink"]
    assert back(sandbox, 3, "rewind-2").batches == [4], "the release is the commit before it"
    assert rows(sandbox) == [1, 2, 3, 98]
    sandbox.run(NAME)
    assert rows(sandbox) == [1, 2, 3, 4, 98]
    assert back(sandbox, 0, "rewind-3").batches == [1, 2, 3, 4]
    assert rows(sandbox) == [1]
    with pytest.raises(AuditFailed):
        sandbox.run(NAME)
    # Newer than what the sink holds by now: its batches 2 and 3 would be missing for good.
    refused(sandbox, "sink.behind", lambda: put_back(sandbox, taken, sink=False))


def test_all_tables_go_back_or_none(sandbox: Sandbox) -> None:
    drained(sandbox, [[1, -1], [2, -2], [3, -3]], quality=POSITIVE)
    [first] = [
        sandbox.storage / "quarantine" / NAME / path
        for path in DeltaTable(str(sandbox.storage / "quarantine" / NAME), version=1).file_uris()
    ]
    aside = first.rename(sandbox.storage / "aside")
    error = refused(sandbox, "sink.vacuumed", lambda: back(sandbox, 0))
    assert "quarantine" in str(error.where)
    aside.rename(first)
    assert back(sandbox, 0, "rewind-2").batches == [1, 2]
    assert (rows(sandbox), set_aside(sandbox)) == ([1], [-1])
    sandbox.run(NAME)
    assert (rows(sandbox), set_aside(sandbox)) == ([1, 2, 3], [-3, -2, -1])


@pytest.mark.sampled
@pytest.mark.parametrize(
    "moment", ["before recovery.sink 1", "after recovery.sink 1", "after recovery.forget"]
)
def test_a_rewind_that_died_lets_nothing_begin_until_it_is_completed(sandbox: Sandbox, moment: str) -> None:
    drained(sandbox, [[1, -1], [2, -2], [3, -3]], quality=POSITIVE)
    die(sandbox, NAME, moment, "checkpoint rewind --to 0 --sink")
    error = sandbox.drain(NAME)[0].error
    assert error is not None
    assert error.id == "checkpoint.torn"
    assert command_of(error.do) == ["checkpoint", "rewind", NAME, "--to", "0", "--sink"]
    back(sandbox, 0)
    assert (rows(sandbox), set_aside(sandbox)) == ([1], [-1])
    sandbox.run(NAME)
    assert (rows(sandbox), set_aside(sandbox)) == ([1, 2, 3], [-3, -2, -1])
    assert sandbox.drain(NAME)[0].run is None


def test_replays_that_go_with_the_batches_are_named(sandbox: Sandbox) -> None:
    """A replay has put rows of batch 0 right after batch 1 had come; going back to 0 takes that back."""
    drained(sandbox, [[1], [2]])
    interval = "2024-01-01T00:00:00Z to 2024-01-02T00:00:00Z"
    table = DeltaTable(str(sandbox.storage / "tables/events"))
    write_deltalake(
        table,
        table.to_pyarrow_table(),
        mode="overwrite",
        commit_properties=CommitProperties(custom_metadata={"drawdown.replay": interval}),
    )
    assert back(sandbox, 0).sink.replays == [interval]
    assert rows(sandbox) == [1]
    with sandbox.metastore() as metastore:
        [notice] = metastore.runs(NAME)[0].notices
    assert notice["id"] == "sink.replays-undone"
    assert "backfill events --from 2024-01-01T00:00:00Z --to 2024-01-02T00:00:00Z" in notice["do"]


@pytest.mark.full
def test_going_back_below_a_stream_is_refused_until_somebody_says_yes(sandbox: Sandbox) -> None:
    drained(sandbox, [[1]])
    taken = snapshot(sandbox)
    land(sandbox, 1, [2])
    sandbox.run(NAME)
    sandbox.pipeline("reader", READER, read_ddl="id INT", transform_sql="SELECT id FROM events")
    sandbox.run("reader")
    error = refused(sandbox, "sink.readers", lambda: put_back(sandbox, taken, sink=True))
    assert command_of(error.do) == ["checkpoint", "restore", NAME, taken, "--sink", "--yes"]
    error = refused(sandbox, "sink.readers", lambda: back(sandbox, 0))
    assert command_of(error.do) == ["checkpoint", "rewind", NAME, "--to", "0", "--sink", "--yes"]
    assert "`drawdown rebuild start reader`" in error.do
    assert rows(sandbox) == [1, 2]
    assert back(sandbox, 0, "rewind-2", yes=True).sink.readers == ["reader"]
    with sandbox.metastore() as metastore:
        [notice] = metastore.runs(NAME)[0].notices
    assert (notice["id"], notice["about"]) == ("sink.rows-again", "reader")
    assert "drawdown rebuild start reader" in notice["do"]


def test_going_back_below_a_stream_over_files_is_refused_too(sandbox: Sandbox) -> None:
    files = SPEC.replace("format: delta", "format: parquet").replace(", publish: audited", "")
    drained(sandbox, [[1], [2]], spec=files, quality=POSITIVE)
    over_files = READER.replace(
        "format: delta, path: tables/events, options: {skipChangeCommits: true}", ON_FILES
    )
    sandbox.pipeline("reader", over_files, read_ddl="id INT", transform_sql="SELECT id FROM events")
    assert back(sandbox, 1).sink.readers == [], "it has read nothing yet"
    sandbox.run("reader")
    assert sorted(row[0] for row in sandbox.delta("tables/read")) == [1, 2]
    error = refused(sandbox, "sink.readers", lambda: back(sandbox, 0, "rewind-2"))
    assert command_of(error.do) == ["checkpoint", "rewind", NAME, "--to", "0", "--sink", "--yes"]
    assert back(sandbox, 0, "rewind-3", yes=True).sink.readers == ["reader"]


def test_a_held_slice_with_rows_that_were_set_aside_goes_back_with_them(sandbox: Sandbox) -> None:
    """Readers have not seen the slice; its rejected rows are in the quarantine, so that is ahead."""
    drained(sandbox, [[1, -1]], quality=POSITIVE + UP_TO_TEN)
    land(sandbox, 1, [99, -2])
    with pytest.raises(AuditFailed):
        sandbox.run(NAME)
    assert (rows(sandbox), set_aside(sandbox)) == ([1], [-2, -1])

    def without_sink() -> None:
        with sandbox.metastore() as metastore:
            generation = Generation.of(
                Workspace(sandbox.project, metastore), load_pipeline(sandbox.project, NAME)
            )
            request = RecoveryRequest("rewind", "rewind-1", this_process(), "ada", "a test")
            as_run(generation, request, lambda lease: rewind(generation, 0, lease, sink=False), str)

    error = refused(sandbox, "sink.ahead", without_sink)
    assert "also reset the quarantine" in error.do
    quarantine = DeltaTable(str(sandbox.storage / "quarantine" / NAME))
    shown = quarantine.version()
    back(sandbox, 0, "rewind-2")
    assert (rows(sandbox), set_aside(sandbox)) == ([1], [-1])
    quarantine.load_as_version(shown)
    assert quarantine.to_pyarrow_table().num_rows == 2, "who reads that version still does"
    quality = sandbox.root / f"include/pipelines/{NAME}/quality.yaml"
    quality.write_text(POSITIVE)
    sandbox.run(NAME)
    assert (rows(sandbox), set_aside(sandbox)) == ([1, 99], [-2, -1])
