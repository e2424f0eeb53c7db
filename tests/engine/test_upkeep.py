"""Upkeep of tables: small files become few, old ones go, and nothing that anybody needs goes with them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from drawdown.errors import AuditFailed
from drawdown.held.decide import Decision, decide
from drawdown.metastore.records import Run
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.support.ageing import grow_old
from tests.support.command_line import answer, drawdown
from tests.support.sandbox import Sandbox
from tests.support.tidying import MONTH, tidied, tidied_after

EVENTS = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: event.ddl}
state: {partitions: 2}
"""
COPIES = """
sources:
  events: {format: delta, path: tables/events}
transform: transform.sql
sink: {format: delta, path: tables/copies, schema: event.ddl}
state: {partitions: 2}
"""
NO_NINES = """
expectations:
  - {type: expect_column_max_to_be_between, kwargs: {column: id, max_value: 98}}
"""
DAYS = timedelta(days=1)


@pytest.fixture
def events(sandbox: Sandbox) -> Sandbox:
    """Eight files of the table `events`, of one run; `copies` can stream them."""
    every = {"event_ddl": "id INT", "transform_sql": "SELECT * FROM events"}
    sandbox.pipeline("events", EVENTS, **every)
    sandbox.pipeline("copies", COPIES, **every)
    arrive(sandbox, *range(8))
    sandbox.run("events")
    return sandbox


def arrive(sandbox: Sandbox, *numbers: int) -> None:
    """A file of one row each."""
    for number in numbers:
        sandbox.land_json(f"landing/events/{number}.json", [{"id": number}], mtime=1 + number)


def ids(sandbox: Sandbox, table: str = "events") -> list[int]:
    return sorted(row[0] for row in sandbox.delta(f"tables/{table}"))


def data_files(sandbox: Sandbox, table: str = "events") -> set[Path]:
    return set((sandbox.storage / f"tables/{table}").rglob("*.parquet"))


def decided(sandbox: Sandbox, choice: str) -> None:
    project = sandbox.project
    with sandbox.metastore() as metastore:
        asked = Decision("release" if choice == "release" else "discard", choice, "host pid 1", "ada", "x")
        decide(Workspace(project, metastore), load_pipeline(project, "events"), asked)


def test_small_files_become_one_and_no_stream_reads_their_rows_again(events: Sandbox) -> None:
    events.run("copies")
    small = data_files(events)
    said = tidied(events, "events", dry=True)
    assert said.compacted["output"].before == 8
    assert data_files(events) == small
    done = tidied(events, "events")
    assert (done.compacted["output"].before, done.compacted["output"].after) == (8, 1)
    assert len(DeltaTable(str(events.storage / "tables/events")).file_uris()) == 1
    assert small < data_files(events), "the small ones stay for who reads an older version"
    assert ids(events) == list(range(8))
    arrive(events, 8)
    events.run("events")
    run = events.run("copies")
    assert run.counts.read == 1, "not the rows of the compacted file"
    assert ids(events, "copies") == list(range(9))


def test_files_that_no_version_of_the_last_week_names_go(events: Sandbox) -> None:
    small = data_files(events)
    grow_old(events, MONTH)
    tidied(events, "events")
    before = DeltaTable(str(events.storage / "tables/events")).version() - 1
    assert tidied_after(events, "events", 6 * DAYS).vacuumed == {}, (
        "the files are older; their version is not"
    )
    old = DeltaTable(str(events.storage / "tables/events"), version=before)
    assert old.to_pyarrow_table().num_rows == 8
    gone = tidied_after(events, "events", 2 * DAYS).vacuumed["output"]
    assert {Path(info.path) for info in gone} == small
    assert len(data_files(events)) == 1
    assert ids(events) == list(range(8))
    with events.metastore() as metastore:
        [last] = metastore.runs("events", limit=1)
    assert (last.kind, last.origin["by"]) == ("upkeep", "ada")
    assert "removed 8 files" in str(last.stop_reason)


@pytest.mark.full
def test_a_stream_that_lags_still_finds_what_it_has_not_read(events: Sandbox) -> None:
    events.run("copies")
    arrive(events, *range(8, 16))
    events.run("events")
    tidied(events, "events")
    done = tidied_after(events, "events")
    assert done.vacuumed == {}
    assert any("for copies, which has not read further: drawdown run copies" in note for note in done.notes)
    assert events.run("copies").counts.read == 8
    assert ids(events, "copies") == list(range(16))
    arrive(events, 16)
    events.run("events")
    events.run("copies")
    assert len(tidied_after(events, "events").vacuumed["output"]) == 16
    assert ids(events) == list(range(17))


@pytest.mark.full
def test_a_stream_whose_position_nobody_can_tell_keeps_all_files(events: Sandbox) -> None:
    events.run("copies")
    tidied(events, "events")
    offsets = events.storage / "_drawdown/copies/checkpoint-1/offsets/0"
    whole = offsets.read_text()
    offsets.write_text("v9\n")
    done = tidied_after(events, "events")
    assert done.vacuumed == {}
    assert any("it is unknown" in note and "copies" in note for note in done.notes)
    offsets.write_text(whole)


def test_a_held_slice_and_what_waits_behind_it_are_published_after_a_month(events: Sandbox) -> None:
    folder = events.root / "include/pipelines/events"
    (folder / "quality.yaml").write_text(NO_NINES)
    arrive(events, 99)
    with pytest.raises(AuditFailed):
        events.run("events")
    (folder / "quality.yaml").unlink()
    arrive(events, 100)
    events.run("events")
    tidied(events, "events")
    assert len(tidied_after(events, "events").vacuumed["output"]) == 8, "files of before the compaction"
    decided(events, "release")
    assert ids(events) == [*range(8), 99, 100]


@pytest.mark.full
def test_a_slice_that_no_audit_could_judge_is_published_after_a_month(events: Sandbox) -> None:
    quality = events.root / "include/pipelines/events/quality.yaml"
    quality.write_text("history:\n  - {measure: freshness, column: id, max_age: 1 day}\n")
    arrive(events, 8)
    with pytest.raises(AuditFailed, match=r"history\.wrong-type"):
        events.run("events")
    tidied(events, "events")
    tidied_after(events, "events")
    quality.unlink()
    events.run("events")
    assert ids(events) == list(range(9))


def test_a_run_that_goes_on_and_one_that_died_are_left_alone(events: Sandbox) -> None:
    before = events.everything()
    with events.metastore() as metastore:
        lease = metastore.acquire("events", "host pid 1", "r1", MONTH)
        [note] = tidied(events, "events").notes
        assert note.startswith("skipped until the next upkeep: events is being run by host pid 1")
        metastore.start_run(Run("r1", "events"))
        metastore.release(lease)
        [note] = tidied(events, "events").notes
        assert "run r1 died, and the next drain cleans up after it: drawdown run events" in note
    assert events.everything() == before


def test_tables_and_folders_of_others_are_left_alone(events: Sandbox) -> None:
    table = events.storage / "tables/events"
    tidied(events, "events")
    for name in (
        "_mine/a.parquet",
        ".hidden/a.parquet",
        "inner/_delta_log/0.json",
        "inner/a.parquet",
        "a.txt",
    ):
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        (table / name).write_text("x")
    (table / "left.parquet").write_text("of a writer that died")
    young = table / "young.parquet"
    grow_old(events, MONTH)
    young.write_text("of a writer that is at work")
    gone = {info.name for info in tidied(events, "events").vacuumed["output"]}
    assert len(gone) == 9
    assert "left.parquet" in gone
    assert {path.name for path in table.rglob("*.parquet")} == {
        "a.parquet", "young.parquet", *(path.name for path in data_files(events)),
    }  # fmt: skip
    assert (table / "inner/a.parquet").exists()


@pytest.mark.full
def test_the_command_says_what_it_does(events: Sandbox) -> None:
    events.land_json("landing/events/x.json", [{"id": 1}])
    said = drawdown(events.root, "upkeep", "--all", "--dry-run", "--json")
    assert said.returncode == 0, said.stderr
    found = {each["pipeline"]: each for each in answer(said.stdout)["pipelines"]}
    assert found["events"]["compacted"] == {"output": {"before": 8, "after": 0}}
    assert found["copies"]["notes"] == [], "it has never run"
    shown = drawdown(events.root, "upkeep", "events", "copies")
    assert shown.returncode == 0, shown.stderr
    assert "8 → 1" in shown.stdout
    with events.metastore() as metastore:
        metastore.acquire("events", "host pid 1", "r1", MONTH)
    busy = drawdown(events.root, "upkeep", "events")
    assert busy.returncode == 0
    assert "skipped until the next upkeep" in busy.stdout
    nothing = drawdown(events.root, "upkeep")
    assert nothing.returncode == 2
    assert "cli.no-pipeline" in nothing.stderr
