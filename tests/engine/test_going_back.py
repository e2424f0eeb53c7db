"""Going back with the sink: exactly the batches that are wanted, of all tables or of none."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import CommitProperties

from drawdown.errors import AuditFailed, RefusedError
from drawdown.metastore import this_process
from drawdown.publishing.held import Decision, decide
from drawdown.recovery.generation import Generation
from drawdown.recovery.request import Request, as_run
from drawdown.recovery.restore import named_snapshot, restore
from drawdown.recovery.rewind import Rewound, rewind
from drawdown.recovery.snapshots import take_snapshot
from drawdown.spec import load_pipeline
from tests.support.deaths import die
from tests.support.recovering import command_of
from tests.support.workspace import Workspace

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
UP_TO_TEN = "expectations: [{type: expect_column_max_to_be_between, kwargs: {column: id, max_value: 10}}]\n"
POSITIVE = "rules: [{name: positive, check: id > 0, on_fail: quarantine}]\n"


def drained(workspace: Workspace, waves: list[list[int]], spec: str = SPEC, quality: str = UP_TO_TEN) -> None:
    """Each wave is a batch, and a run of its own."""
    workspace.pipeline(
        NAME, spec, events_ddl="id INT", transform_sql="SELECT * FROM events", quality_yaml=quality
    )
    for number, wave in enumerate(waves):
        land(workspace, number, wave)
        workspace.drain(NAME)


def land(workspace: Workspace, number: int, wave: list[int]) -> None:
    workspace.land_json(f"landing/events/{number}.json", [{"id": each} for each in wave], mtime=number + 1)


def rows(workspace: Workspace) -> list[int]:
    return [row[0] for row in workspace.delta("tables/events")]


def set_aside(workspace: Workspace) -> list[int]:
    return sorted(json.loads(row["payload"])["id"] for row in workspace.quarantined(NAME))


def released(workspace: Workspace) -> None:
    with workspace.metastore() as metastore:
        decision = Decision("release", "r1", this_process(), "ada", "looked at")
        decide(metastore, workspace.project, load_pipeline(workspace.project, NAME), decision)


def back(workspace: Workspace, to: int, run_id: str = "rewind-1") -> Rewound:
    """`drawdown checkpoint rewind events --to TO --sink`."""
    with workspace.metastore() as metastore:
        generation = Generation.of(workspace.project, load_pipeline(workspace.project, NAME), metastore)
        request = Request("rewind", run_id, this_process(), "ada", "a test")
        return as_run(generation, request, lambda lease: rewind(generation, to, lease, sink=True), str)


def snapshot(workspace: Workspace) -> str:
    with workspace.metastore() as metastore:
        generation = Generation.of(workspace.project, load_pipeline(workspace.project, NAME), metastore)
        request = Request("snapshot", "snapshot-1", this_process(), "ada", "a test")
        return as_run(generation, request, lambda lease: take_snapshot(generation, lease), str).name


def put_back(workspace: Workspace, name: str, *, sink: bool) -> None:
    with workspace.metastore() as metastore:
        generation = Generation.of(workspace.project, load_pipeline(workspace.project, NAME), metastore)
        request = Request("restore", "restore-1", this_process(), "ada", "a test")
        chosen = named_snapshot(generation, name)
        as_run(generation, request, lambda lease: restore(generation, chosen, lease, sink=sink), str)


def refused(workspace: Workspace, error_id: str, work: Callable[[], object]) -> RefusedError:
    """What is refused, with nothing changed."""
    before = workspace.everything()
    with pytest.raises(RefusedError) as error:
        work()
    assert error.value.id == error_id, str(error.value)
    assert workspace.everything() == before
    return error.value


def test_a_slice_that_was_released_late_is_not_lost_by_going_back_to_a_batch_behind_it(
    workspace: Workspace,
) -> None:
    drained(workspace, [[1], [98], [2], [3]], UNORDERED)
    taken = snapshot(workspace)
    released(workspace)
    land(workspace, 4, [4])
    workspace.run(NAME)
    assert rows(workspace) == [1, 2, 3, 4, 98]
    error = refused(workspace, "sink.between", lambda: back(workspace, 2))
    assert command_of(error.do) == ["checkpoint", "rewind", NAME, "--to", "0", "--sink"]
    assert back(workspace, 3, "rewind-2").batches == [4], "the release is the commit before it"
    assert rows(workspace) == [1, 2, 3, 98]
    workspace.run(NAME)
    assert rows(workspace) == [1, 2, 3, 4, 98]
    assert back(workspace, 0, "rewind-3").batches == [1, 2, 3, 4]
    assert rows(workspace) == [1]
    with pytest.raises(AuditFailed):
        workspace.run(NAME)
    # Newer than what the sink holds by now: its batches 2 and 3 would be missing for good.
    refused(workspace, "sink.behind", lambda: put_back(workspace, taken, sink=False))


def test_all_tables_go_back_or_none(workspace: Workspace) -> None:
    drained(workspace, [[1, -1], [2, -2], [3, -3]], quality=POSITIVE)
    [first] = [
        workspace.storage / "quarantine" / NAME / path
        for path in DeltaTable(str(workspace.storage / "quarantine" / NAME), version=1).file_uris()
    ]
    aside = first.rename(workspace.storage / "aside")
    error = refused(workspace, "sink.vacuumed", lambda: back(workspace, 0))
    assert "quarantine" in str(error.where)
    aside.rename(first)
    assert back(workspace, 0, "rewind-2").batches == [1, 2]
    assert (rows(workspace), set_aside(workspace)) == ([1], [-1])
    workspace.run(NAME)
    assert (rows(workspace), set_aside(workspace)) == ([1, 2, 3], [-3, -2, -1])


@pytest.mark.parametrize(
    "moment", ["before recovery.sink 1", "after recovery.sink 1", "after recovery.forget"]
)
def test_a_rewind_that_died_lets_nothing_begin_until_it_is_completed(
    workspace: Workspace, moment: str
) -> None:
    drained(workspace, [[1, -1], [2, -2], [3, -3]], quality=POSITIVE)
    die(workspace, NAME, moment, "checkpoint rewind --to 0 --sink")
    error = workspace.drain(NAME)[0].error
    assert error is not None
    assert error.id == "checkpoint.torn"
    assert command_of(error.do) == ["checkpoint", "rewind", NAME, "--to", "0", "--sink"]
    back(workspace, 0)
    assert (rows(workspace), set_aside(workspace)) == ([1], [-1])
    workspace.run(NAME)
    assert (rows(workspace), set_aside(workspace)) == ([1, 2, 3], [-3, -2, -1])
    assert workspace.drain(NAME)[0].run is None


def test_replays_that_go_with_the_batches_are_named(workspace: Workspace) -> None:
    """A replay has put rows of batch 0 right after batch 1 had come; going back to 0 takes that back."""
    drained(workspace, [[1], [2]])
    interval = "2024-01-01T00:00:00Z to 2024-01-02T00:00:00Z"
    table = DeltaTable(str(workspace.storage / "tables/events"))
    write_deltalake(
        table,
        table.to_pyarrow_table(),
        mode="overwrite",
        commit_properties=CommitProperties(custom_metadata={"drawdown.replay": interval}),
    )
    assert back(workspace, 0).sink.replays == [interval]
    assert rows(workspace) == [1]
    with workspace.metastore() as metastore:
        [notice] = metastore.runs(NAME)[0].notices
    assert notice["id"] == "sink.replays-undone"
    assert "backfill events --from 2024-01-01T00:00:00Z --to 2024-01-02T00:00:00Z" in notice["do"]


def test_who_streams_the_table_is_named(workspace: Workspace) -> None:
    drained(workspace, [[1], [2]])
    workspace.pipeline("reader", READER, read_ddl="id INT", transform_sql="SELECT id FROM events")
    workspace.run("reader")
    assert back(workspace, 0).sink.readers == ["reader"]
    with workspace.metastore() as metastore:
        [notice] = metastore.runs(NAME)[0].notices
    assert (notice["id"], notice["about"]) == ("sink.rows-again", "reader")
    assert "drawdown rebuild start reader" in notice["do"]


def test_a_held_slice_with_rows_that_were_set_aside_goes_back_with_them(workspace: Workspace) -> None:
    """Readers have not seen the slice; its rejected rows are in the quarantine, so that is ahead."""
    drained(workspace, [[1, -1]], quality=POSITIVE + UP_TO_TEN)
    land(workspace, 1, [99, -2])
    with pytest.raises(AuditFailed):
        workspace.run(NAME)
    assert (rows(workspace), set_aside(workspace)) == ([1], [-2, -1])

    def without_sink() -> None:
        with workspace.metastore() as metastore:
            generation = Generation.of(workspace.project, load_pipeline(workspace.project, NAME), metastore)
            request = Request("rewind", "rewind-1", this_process(), "ada", "a test")
            as_run(generation, request, lambda lease: rewind(generation, 0, lease, sink=False), str)

    error = refused(workspace, "sink.ahead", without_sink)
    assert "take the quarantine back as well" in error.do
    back(workspace, 0, "rewind-2")
    assert (rows(workspace), set_aside(workspace)) == ([1], [-1])
    quality = workspace.root / f"include/pipelines/{NAME}/quality.yaml"
    quality.write_text(POSITIVE)
    workspace.run(NAME)
    assert (rows(workspace), set_aside(workspace)) == ([1, 99], [-2, -1])
