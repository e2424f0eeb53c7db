"""The replay of an interval and the quarantine: a record is in the table once, as it was decided."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import DataFrame

from drawdown.delta.table import DeltaTableFiles
from drawdown.drain.attempt import Attempt
from drawdown.drain.run_context import RunContext
from drawdown.errors import DrawdownError, RefusedError
from drawdown.metastore import Metastore
from drawdown.quality.audit import GxAuditor
from drawdown.quality.outcome import AuditOutcome
from drawdown.quarantine.drop import Drop, drop
from drawdown.quarantine.row_states import Choice
from drawdown.replay.spark_replay import replay as replay_interval
from drawdown.spec import Pipeline, load_pipeline
from drawdown.values.interval import Interval
from drawdown.workspace import Workspace
from tests.support.command_line import drawdown
from tests.support.older_copy import copy_of
from tests.support.replays import replayed
from tests.support.sandbox import Sandbox
from tests.support.set_aside import NAME, replay, rows

SPEC = """
sources:
  events:
    format: csv
    path: landing/events
    schema: events.ddl
    options: {header: true}
    watermark: {column: at, delay: 0 seconds}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: events.ddl, time_column: at}
state: {partitions: 2}
replay: {interval: 1 day}
"""
FILES = {"events_ddl": "id INT, at TIMESTAMP, v INT", "transform_sql": "SELECT * FROM events"}
DAY = "2024-01-01", "2024-01-02"


def judge_by(sandbox: Sandbox, most: int) -> None:
    sandbox.pipeline(
        NAME,
        SPEC,
        **FILES,
        quality_yaml=f"rules: [{{name: small, check: v < {most}, on_fail: quarantine}}]\n",
    )


def land(sandbox: Sandbox, name: str, *records: str) -> None:
    sandbox.land(f"landing/events/{name}.csv", ["id,at,v", *records])
    sandbox.run(NAME)


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """1 and 2 are in; 3, 4 and 5 were set aside, 5 of the next day."""
    judge_by(sandbox, 10)
    land(
        sandbox,
        "a",
        "1,2024-01-01T10:00:00Z,1",
        "3,2024-01-01T11:00:00.123456Z,30",
        "4,2024-01-01T12:00:00Z,40",
        "5,2024-01-02T12:00:00Z,30",
    )
    land(sandbox, "b", "2,2024-01-03T10:00:00Z,2")
    return sandbox


def values(sandbox: Sandbox) -> dict[int, int]:
    """By id; a record that is there twice fails."""
    found = sandbox.delta("tables/out")
    assert len({row[0] for row in found}) == len(found), f"some are there twice: {found}"
    return {row[0]: row[2] for row in found}


def states(sandbox: Sandbox) -> dict[int, str]:
    return {int(str(row.payload).split('"id":')[1].split(",")[0]): row.state for row in rows(sandbox)}


def test_what_a_replay_of_the_interval_brought_is_not_open_any_more(filled: Sandbox) -> None:
    judge_by(filled, 35)
    replayed(filled, *DAY)
    assert values(filled) == {1: 1, 2: 2, 3: 30}
    assert states(filled) == {3: "replayed", 4: "open", 5: "open"}
    assert replay(filled).counts.replayed == 1
    assert values(filled) == {1: 1, 2: 2, 3: 30, 5: 30}
    assert states(filled) == {3: "replayed", 4: "open", 5: "replayed"}
    replayed(filled, *DAY)
    replayed(filled, "2024-01-02", "2024-01-03")
    assert values(filled) == {1: 1, 2: 2, 3: 30, 5: 30}


def test_a_row_that_is_dropped_during_a_replay_stays_out(filled: Sandbox) -> None:
    judge_by(filled, 35)
    said: list[str] = []
    with filled.metastore() as metastore:
        workspace = Workspace(filled.project, metastore)

        def drop_then_audit(rows: DataFrame, pipeline: Pipeline, count: int) -> AuditOutcome:
            if not said:
                decided = Drop(Choice(), "d", "test", "ada", "no use")
                assert drop(workspace, pipeline, decided) == 3
            return GxAuditor()(rows, pipeline, count)

        assert filled.spark is not None
        pipeline = load_pipeline(filled.project, NAME)
        context = RunContext("r1", "test", on_notice=said.append)
        attempt = Attempt(filled.spark, workspace, pipeline, drop_then_audit, context)
        replay_interval(attempt, Interval.parse(*DAY))
    assert len(said) == 1, "it began again"
    assert values(filled) == {1: 1, 2: 2}
    assert states(filled) == {3: "dropped", 4: "dropped", 5: "dropped"}


def test_the_table_says_what_it_brought_to_an_older_copy_of_the_metastore(filled: Sandbox) -> None:
    judge_by(filled, 35)
    put_back = copy_of(filled)
    replayed(filled, *DAY)
    put_back()
    assert states(filled) == {3: "replayed", 4: "open", 5: "open"}
    assert replay(filled).counts.replayed == 1
    assert values(filled) == {1: 1, 2: 2, 3: 30, 5: 30}


def test_what_the_table_was_taken_back_from_is_open_again(filled: Sandbox) -> None:
    judge_by(filled, 35)
    put_back = copy_of(filled)
    replayed(filled, *DAY)
    put_back()
    done = drawdown(filled.root, "checkpoint", "rewind", NAME, "--to", "0", "--sink")
    assert done.returncode == 0, done.stdout + done.stderr
    assert values(filled) == {1: 1}
    assert states(filled)[3] == "open"


@pytest.mark.full
def test_a_patch_is_in_the_interval_that_is_replayed_later(filled: Sandbox) -> None:
    assert replay(filled, patch=("v = v div 10", "id = id + 100")).counts.replayed == 3
    before = values(filled)
    assert before == {1: 1, 2: 2, 103: 3, 104: 4, 105: 3}
    replayed(filled, *DAY)
    assert values(filled) == before
    judge_by(filled, 100)
    replayed(filled, *DAY)
    assert values(filled) == before, "also when the rule lets the record pass as it came"


def test_a_patch_may_move_a_row_into_another_interval(filled: Sandbox) -> None:
    replay(filled, patch=("v = 7", "at = at + interval 1 day"), batches=(0,))
    before = values(filled)
    replayed(filled, *DAY)
    replayed(filled, "2024-01-02", "2024-01-03")
    assert values(filled) == before
    assert set(before) == {1, 2, 3, 4, 5}


def test_a_row_that_was_dropped_stays_out(filled: Sandbox) -> None:
    with filled.metastore() as metastore:
        pipeline = load_pipeline(filled.project, NAME)
        assert (
            drop(Workspace(filled.project, metastore), pipeline, Drop(Choice(), "d", "test", "ada", "no use"))
            == 3
        )
    judge_by(filled, 100)
    replayed(filled, *DAY)
    assert values(filled) == {1: 1, 2: 2}
    assert set(states(filled).values()) == {"dropped"}


@pytest.mark.full
def test_patched_and_dropped_records_that_are_not_in_the_source_as_they_were_are_counted(
    filled: Sandbox,
) -> None:
    replay(filled, patch=("v = 7",), batches=(0,))
    with filled.metastore() as metastore:
        land(filled, "c", "6,2024-01-01T13:00:00Z,50")
        pipeline = load_pipeline(filled.project, NAME)
        assert (
            drop(Workspace(filled.project, metastore), pipeline, Drop(Choice(), "d", "test", "ada", "no use"))
            == 1
        )
    before = filled.delta("tables/out")

    def rewritten(name: str, old: str, new: str) -> None:
        """Of the same size, and as old: nobody sees that the file is another."""
        file = filled.storage / f"landing/events/{name}.csv"
        at = file.stat().st_mtime_ns
        file.write_text(file.read_text().replace(old, new))
        os.utime(file, ns=(at, at))

    def refused() -> str:
        with pytest.raises(RefusedError) as error:
            replayed(filled, *DAY)
        assert error.value.id == "replay.decided"
        assert filled.delta("tables/out") == before
        return error.value.what.split(" of source")[0]

    rewritten("a", "11:00:00.123456", "11:00:00.654321")
    assert refused() == "1 record"
    rewritten("c", "6,2024", "8,2024")
    assert refused() == "2 records"
    rewritten("a", "11:00:00.654321", "11:00:00.123456")
    assert refused() == "1 record"
    rewritten("c", "8,2024", "6,2024")
    replayed(filled, *DAY)
    assert filled.delta("tables/out") == before


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("part", "method", "committed"),
    [(DeltaTableFiles, "replace", False), (Metastore, "end_changes", True)],
    ids=["before the commit", "after the commit"],
)
def test_a_replay_that_died_around_its_commit_leaves_each_row_in_one_place(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch, part: type, method: str, committed: bool
) -> None:
    judge_by(filled, 35)
    with monkeypatch.context() as death:

        def dies(*_: object, **__: object) -> None:
            raise OSError("dead")

        death.setattr(part, method, dies)
        with pytest.raises(DrawdownError):
            replayed(filled, *DAY)
    assert (3 in values(filled)) == committed
    assert states(filled) == {3: "replaying", 4: "open", 5: "open"}
    assert replay(filled).counts.replayed == (1 if committed else 2)
    assert values(filled) == {1: 1, 2: 2, 3: 30, 5: 30}
    assert states(filled) == {3: "replayed", 4: "open", 5: "replayed"}
