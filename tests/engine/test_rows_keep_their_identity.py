"""Quarantined rows and the replay of their interval: a record is in one place, whatever was changed since."""

from __future__ import annotations

import os

import pytest

from drawdown.errors import RefusedError
from drawdown.quarantine.drop import Drop, drop
from drawdown.quarantine.row_states import Choice
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.faults.test_moved_storage import move
from tests.support.command_line import drawdown
from tests.support.deaths import die
from tests.support.replays import replayed
from tests.support.sandbox import Sandbox
from tests.support.set_aside import NAME, replay, rows

pytestmark = pytest.mark.capability("RIGHT-04")

SPEC = """
sources:
  events:
    format: json
    path: landing/events
    schema: events.ddl
    OPTIONS
    watermark: {column: at, delay: 0 seconds}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl, time_column: day, MORE}
state: {partitions: 2}
replay: {interval: 1 day, lookback: 0 seconds, lookahead: 0 seconds}
"""
SQL = "SELECT id, date_trunc('DAY', at) AS day, v FROM events"
DAY, NEXT_DAY = ("2024-01-01", "2024-01-02"), ("2024-01-02", "2024-01-03")
STRICT, LOOSE = 10, 100


class Project:
    """Row by row into a table, replayed by days; values above a limit are set aside."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.options, self.more, self.columns, self.sql = (
            "",
            "mode: append",
            "id INT, at TIMESTAMP, v INT",
            SQL,
        )
        self.limit(STRICT)

    def limit(self, most: int) -> None:
        spec = SPEC.replace("OPTIONS", self.options or "options: {}").replace("MORE", self.more)
        rule = f"rules: [{{name: small, check: v < {most}, on_fail: quarantine}}]\n"
        files = {"events_ddl": self.columns, "out_ddl": "id INT, day TIMESTAMP, v INT"}
        self.sandbox.pipeline(NAME, spec, **files, transform_sql=self.sql, quality_yaml=rule)

    def land(self, name: str, *records: dict[str, object], mtime: float | None = None) -> None:
        self.sandbox.land_json(f"landing/events/{name}.json", records, mtime)

    def land_and_run(self, name: str, *records: dict[str, object]) -> None:
        self.land(name, *records)
        self.sandbox.run(NAME)

    def close_the_day(self) -> None:
        self.land_and_run("later", record(0, 1, day=3))

    def values(self) -> dict[int, int]:
        found = [row for row in self.sandbox.delta("tables/out") if row[0] != 0]
        assert len({row[0] for row in found}) == len(found), f"some are there twice: {found}"
        return {row[0]: row[2] for row in found}

    def states(self) -> list[str]:
        return sorted(row.state for row in rows(self.sandbox))

    def drop_all(self) -> None:
        with self.sandbox.metastore() as metastore:
            workspace = Workspace(self.sandbox.project, metastore)
            pipeline = load_pipeline(self.sandbox.project, NAME)
            drop(workspace, pipeline, Drop(Choice(), "d", "test", "ada", "no use"))

    def remove(self, name: str) -> None:
        (self.sandbox.storage / f"landing/events/{name}.json").unlink()


def record(id: int, v: int, day: int = 1, **more: object) -> dict[str, object]:
    return {"id": id, "at": f"2024-01-0{day}T10:00:00Z", "v": v, **more}


@pytest.fixture
def project(sandbox: Sandbox) -> Project:
    return Project(sandbox)


def test_a_backfill_closes_what_it_brings_also_with_a_column_that_came_later(project: Project) -> None:
    project.land_and_run("a", record(1, 1, more=7), record(2, 20, more=8))
    project.close_the_day()
    project.columns += ", more INT"
    project.limit(LOOSE)
    replayed(project.sandbox, *DAY)
    assert project.values() == {1: 1, 2: 20}
    assert project.states() == ["replayed"]


def test_a_dropped_row_stays_out_of_a_backfill_with_a_column_that_came_later(project: Project) -> None:
    project.land_and_run("a", record(1, 1, more=7), record(2, 20, more=8))
    project.drop_all()
    project.close_the_day()
    project.columns += ", more INT"
    project.limit(LOOSE)
    replayed(project.sandbox, *DAY)
    assert project.values() == {1: 1}
    assert project.states() == ["dropped"]


def test_a_backfill_closes_what_it_brings_from_a_storage_that_was_moved(project: Project) -> None:
    project.land_and_run("a", record(1, 1), record(2, 20))
    project.close_the_day()
    old = move(project.sandbox)
    moved = drawdown(project.sandbox.root, "checkpoint", "move", NAME, "--from", str(old))
    assert moved.returncode == 0, moved.stdout + moved.stderr
    project.limit(LOOSE)
    replayed(project.sandbox, *DAY)
    assert project.values() == {1: 1, 2: 20}
    assert project.states() == ["replayed"]


def test_with_direct_publishing_a_backfill_waits_for_what_a_dead_run_set_aside(project: Project) -> None:
    project.more = "mode: append, publish: direct"
    project.limit(STRICT)
    project.close_the_day()
    project.land("a", record(1, 1), record(2, 20))
    die(project.sandbox, NAME, "after batch.end 1")
    project.limit(LOOSE)
    with pytest.raises(RefusedError) as waiting:
        replayed(project.sandbox, *DAY)
    assert waiting.value.id == "replay.waiting"
    assert f"`drawdown run {NAME}`" in waiting.value.do
    project.sandbox.drain(NAME)
    project.sandbox.drain(NAME)
    replayed(project.sandbox, *DAY)
    assert project.values() == {1: 1, 2: 20}
    assert project.states() == ["replayed"]


@pytest.mark.parametrize("brought_by", ["replay", "backfill"])
def test_a_row_that_was_brought_stays_when_its_file_is_gone(project: Project, brought_by: str) -> None:
    """No row of its day was fed from that file, so a backfill of the day does without the file."""
    project.land_and_run("a", record(1, 1), record(2, 20, day=2))
    project.close_the_day()
    project.limit(LOOSE)
    if brought_by == "replay":
        replay(project.sandbox)
    else:
        replayed(project.sandbox, *NEXT_DAY)
    assert project.values() == {1: 1, 2: 20}
    project.remove("a")
    replayed(project.sandbox, *NEXT_DAY)
    assert project.values() == {1: 1, 2: 20}
    assert project.states() == ["replayed"]


def test_a_row_without_event_time_that_was_brought_stays_when_its_file_is_gone(project: Project) -> None:
    project.columns = "id INT, at TIMESTAMP, v INT, created TIMESTAMP"
    project.sql = "SELECT id, date_trunc('DAY', coalesce(at, created)) AS day, v FROM events"
    project.limit(STRICT)
    project.land_and_run("a", record(1, 1), {"id": 2, "v": 20, "created": "2024-01-02T10:00:00Z"})
    project.close_the_day()
    project.limit(LOOSE)
    replay(project.sandbox)
    project.remove("a")
    replayed(project.sandbox, *NEXT_DAY)
    assert project.values() == {1: 1, 2: 20}


def test_a_dropped_row_whose_file_is_gone_refuses_nothing(project: Project) -> None:
    project.land_and_run("a", record(1, 1), record(2, 20, day=2))
    project.close_the_day()
    project.drop_all()
    project.remove("a")
    replayed(project.sandbox, *NEXT_DAY)
    assert project.values() == {1: 1}


def test_in_update_mode_a_replayed_row_is_as_new_as_its_decision(project: Project) -> None:
    project.more = "mode: update, keys: [id, day]"
    project.limit(STRICT)
    project.land_and_run("a", record(1, 20))
    project.land_and_run("b", record(1, 2))
    project.close_the_day()
    project.limit(LOOSE)
    replay(project.sandbox)
    assert project.values() == {1: 20}, "the replayed row came last"
    replayed(project.sandbox, *DAY)
    assert project.values() == {1: 20}


def test_a_file_that_was_read_twice_is_replayed_once(project: Project) -> None:
    project.options = "options: {maxFileAge: 1s}\n    policy: {rewritten: warn, too_old: warn}"
    project.limit(STRICT)
    project.land("a", record(1, 1), mtime=1_000)
    project.sandbox.run(NAME)
    project.land("b", record(2, 2), mtime=2_000)
    project.sandbox.run(NAME)
    os.utime(project.sandbox.storage / "landing/events/a.json", (3_000, 3_000))
    assert project.sandbox.run(NAME).counts.read == 1, "it was forgotten, and is read again"
    project.land("c", record(0, 1, day=3), mtime=4_000)
    project.sandbox.run(NAME)
    replayed(project.sandbox, *DAY)
    assert project.values() == {1: 1, 2: 2}


def test_a_backfill_leaves_drifted_files_out_until_the_schema_knows_their_columns(project: Project) -> None:
    project.options = "policy: {drift: quarantine}"
    project.limit(STRICT)
    project.land_and_run("a", record(1, 1))
    project.land_and_run("b", record(2, 2, more=7))
    project.close_the_day()
    assert project.states() == ["open"]
    replayed(project.sandbox, *DAY)
    assert (project.values(), project.states()) == ({1: 1}, ["open"])
    project.columns += ", more INT"
    project.limit(STRICT)
    replayed(project.sandbox, *DAY)
    assert (project.values(), project.states()) == ({1: 1, 2: 2}, ["replayed"])


def test_rows_of_one_key_are_not_replayed_into_one_batch(project: Project) -> None:
    """That batch could never be written, and no run after it."""
    project.more = "mode: update, keys: [id, day]"
    project.limit(STRICT)
    project.land_and_run("a", record(1, 20))
    project.land_and_run("b", record(1, 30))
    project.limit(LOOSE)
    with pytest.raises(RefusedError) as twice:
        replay(project.sandbox)
    assert twice.value.id == "quarantine.one-key-twice"
    assert project.states() == ["open", "open"]
    replay(project.sandbox, batches=(0,))
    replay(project.sandbox, batches=(1,))
    assert project.values() == {1: 30}
