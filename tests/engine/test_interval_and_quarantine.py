"""The replay of an interval and the quarantine: a record is in the table once, as it was decided."""

from __future__ import annotations

import pytest

from drawdown.errors import DrawdownError, RefusedError
from drawdown.metastore import Metastore
from drawdown.publishing.delta_table import DeltaTableFiles
from drawdown.publishing.dropping import Drop, drop
from drawdown.publishing.set_aside import Choice
from drawdown.spec import load_pipeline
from tests.support.replays import replayed
from tests.support.set_aside import NAME, replay, rows
from tests.support.workspace import Workspace

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


def judge_by(workspace: Workspace, most: int) -> None:
    workspace.pipeline(
        NAME,
        SPEC,
        **FILES,
        quality_yaml=f"rules: [{{name: small, check: v < {most}, on_fail: quarantine}}]\n",
    )


def land(workspace: Workspace, name: str, *records: str) -> None:
    workspace.land(f"landing/events/{name}.csv", ["id,at,v", *records])
    workspace.run(NAME)


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    """1 and 2 are in; 3, 4 and 5 were set aside, 5 of the next day."""
    judge_by(workspace, 10)
    land(
        workspace,
        "a",
        "1,2024-01-01T10:00:00Z,1",
        "3,2024-01-01T11:00:00.123456Z,30",
        "4,2024-01-01T12:00:00Z,40",
        "5,2024-01-02T12:00:00Z,30",
    )
    land(workspace, "b", "2,2024-01-03T10:00:00Z,2")
    return workspace


def values(workspace: Workspace) -> dict[int, int]:
    """By id; a record that is there twice fails."""
    found = workspace.delta("tables/out")
    assert len({row[0] for row in found}) == len(found), f"some are there twice: {found}"
    return {row[0]: row[2] for row in found}


def states(workspace: Workspace) -> dict[int, str]:
    return {int(str(row.payload).split('"id":')[1].split(",")[0]): row.state for row in rows(workspace)}


def test_what_a_replay_of_the_interval_brought_is_not_open_any_more(filled: Workspace) -> None:
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


def test_a_patch_is_in_the_interval_that_is_replayed_later(filled: Workspace) -> None:
    assert replay(filled, patch=("v = v div 10", "id = id + 100")).counts.replayed == 3
    before = values(filled)
    assert before == {1: 1, 2: 2, 103: 3, 104: 4, 105: 3}
    replayed(filled, *DAY)
    assert values(filled) == before
    judge_by(filled, 100)
    replayed(filled, *DAY)
    assert values(filled) == before, "also when the rule lets the record pass as it came"


def test_a_patch_may_move_a_row_into_another_interval(filled: Workspace) -> None:
    replay(filled, patch=("v = 7", "at = at + interval 1 day"), batches=(0,))
    before = values(filled)
    replayed(filled, *DAY)
    replayed(filled, "2024-01-02", "2024-01-03")
    assert values(filled) == before
    assert set(before) == {1, 2, 3, 4, 5}


def test_a_row_that_was_dropped_stays_out(filled: Workspace) -> None:
    with filled.metastore() as metastore:
        pipeline = load_pipeline(filled.project, NAME)
        assert drop(metastore, filled.project, pipeline, Drop(Choice(), "d", "test", "ada", "no use")) == 3
    judge_by(filled, 100)
    replayed(filled, *DAY)
    assert values(filled) == {1: 1, 2: 2}
    assert set(states(filled).values()) == {"dropped"}


def test_a_patched_record_that_is_not_in_the_source_as_it_was_is_refused(filled: Workspace) -> None:
    replay(filled, patch=("v = 7",))
    before = filled.delta("tables/out")
    file = filled.storage / "landing/events/a.csv"
    file.write_text(file.read_text().replace("11:00:00.123456", "11:00:00.654321"))
    with pytest.raises(RefusedError) as refused:
        replayed(filled, *DAY)
    assert refused.value.id in ("replay.decided", "replay.files-gone")
    assert filled.delta("tables/out") == before


@pytest.mark.parametrize(
    ("part", "method", "committed"),
    [(DeltaTableFiles, "replace", False), (Metastore, "end_changes", True)],
    ids=["before the commit", "after the commit"],
)
def test_a_replay_that_died_around_its_commit_leaves_each_row_in_one_place(
    filled: Workspace, monkeypatch: pytest.MonkeyPatch, part: type, method: str, committed: bool
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
