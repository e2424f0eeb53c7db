"""How a rebuild ends: every state has a command that leaves it, whatever has failed or gone meanwhile."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from drawdown.errors import DrawdownError, RefusedError
from drawdown.metastore.records import Run
from tests.support.armed import armed
from tests.support.rebuilds import FIRST, NAME, SECOND, THIRD, Hourly, sums
from tests.support.recovering import keep, put_back

OLD, NEW = sums(FIRST + SECOND, "02T09", by_key=False), sums(FIRST + SECOND, "02T09")
Kept = dict[str, tuple[Hourly, Path]]


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A project with a rebuild that was compared, and the same after its swap; each has quarantine rows."""
    found: Kept = {}
    for state in ("compared", "swapped"):
        hourly = Hourly(tmp_path_factory.mktemp(state) / "project", spark)
        hourly.live_version()
        hourly.arrive(1, FIRST + SECOND)
        hourly.land("landing/events/2.json", ["{broken"], mtime=1_700_000_002)
        hourly.run(NAME)
        hourly.next_version()
        hourly.rebuilt()
        if state == "swapped":
            hourly.end("approve", 0)
        found[state] = hourly, keep(hourly)
    return found


@pytest.fixture
def at(kept: Kept) -> Callable[[str, str], Hourly]:
    """A copy of such a project, in which a command was then cut off by a fault."""

    def found(state: str, fault: str) -> Hourly:
        hourly, copy = kept[state]
        put_back(hourly, copy)
        if fault:
            with armed(fault), pytest.raises(OSError, match="DRAWDOWN_FAULT"):
                hourly.end("approve" if state == "compared" else "rollback", 1)
        return hourly

    return found


def files(hourly: Hourly, path: str, generation: int) -> list[Path]:
    """Data files that a generation has brought into a table."""
    table = hourly.storage / path
    found = (table / f"_rebuild/{generation}" if generation > 1 else table / "data").rglob("*.parquet")
    return [file for file in found if "_delta_log" not in str(file)]


def vacuum(path: str, generation: int) -> Callable[[Hourly], None]:
    def gone(hourly: Hourly) -> None:
        assert files(hourly, path, generation)
        for file in files(hourly, path, generation):
            file.unlink()

    return gone


def forget_first(hourly: Hourly) -> None:
    """A metastore that was pruned, or came from a copy."""
    with sqlite3.connect(hourly.root / "metastore.db") as store:
        store.execute("DELETE FROM checkpoints WHERE generation = 1")


def prune_first(hourly: Hourly) -> None:
    shutil.rmtree(hourly.storage / "_drawdown/hourly/checkpoint-1")


def nothing(hourly: Hourly) -> None:
    return None


OUTPUT, QUARANTINE = "tables/hourly", "quarantine/hourly"


@dataclass(frozen=True)
class Case:
    """`says`: by command the error that refuses it, changing nothing, or the generation that is live then."""

    state: str
    cut: str
    gone: Callable[[Hourly], None]
    says: dict[str, str | int]


BEGUN, HALF, DONE = "fail before rebuild.swap 1", "fail before rebuild.swap 2", "fail before rebuild.note"
LEFT, HALF_BACK, BACK = (
    "fail before rollback.commit 1",
    "fail before rollback.commit 2",
    "fail before rollback.note",
)
CASES = {
    "a shadow whose files are gone": Case(
        "compared", "", vacuum(OUTPUT, 2), {"approve": "sink.vacuumed", "discard": 1}
    ),
    "a swap that was begun": Case("compared", BEGUN, nothing, {"approve": 2, "discard": 1}),
    "a swap half-way": Case("compared", HALF, nothing, {"approve": 2, "discard": 1}),
    "a swap half-way, the shadow's files are gone": Case(
        "compared", HALF, vacuum(OUTPUT, 2), {"approve": "sink.vacuumed", "discard": 1}
    ),
    "a swap half-way, the quarantine's old files are gone": Case(
        "compared", HALF, vacuum(QUARANTINE, 1), {"approve": 2, "discard": 1}
    ),
    "a swap half-way, the old record is gone": Case("compared", HALF, forget_first, {"approve": 2}),
    "a swap that is not noted": Case("compared", DONE, nothing, {"approve": 2, "discard": 1}),
    "a swap that is not noted, the old files are gone": Case(
        "compared", DONE, vacuum(OUTPUT, 1), {"discard": "sink.vacuumed", "approve": 2}
    ),
    "a generation whose old files are gone": Case(
        "swapped", "", vacuum(OUTPUT, 1), {"rollback": "sink.vacuumed"}
    ),
    "a generation whose old record is gone": Case(
        "swapped", "", forget_first, {"rollback": "rebuild.pruned"}
    ),
    "a roll back that was begun": Case("swapped", LEFT, nothing, {"rollback": 1, "approve": 2}),
    "a roll back half-way": Case("swapped", HALF_BACK, nothing, {"rollback": 1, "approve": 2}),
    "a roll back half-way, the old files are gone": Case(
        "swapped", HALF_BACK, vacuum(OUTPUT, 1), {"rollback": "sink.vacuumed", "approve": 2}
    ),
    "a roll back half-way, the new quarantine's files are gone": Case(
        "swapped", HALF_BACK, vacuum(QUARANTINE, 2), {"rollback": 1, "approve": 2}
    ),
    "a roll back half-way, the old checkpoint is gone": Case(
        "swapped", HALF_BACK, prune_first, {"rollback": "rebuild.pruned", "approve": 2}
    ),
    "a roll back that is not noted, the old record is gone": Case(
        "swapped", BACK, forget_first, {"rollback": "rebuild.pruned", "approve": 2}
    ),
    "a roll back that is not noted, the new files are gone": Case(
        "swapped", BACK, vacuum(OUTPUT, 2), {"approve": "sink.vacuumed", "rollback": 1}
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_every_state_has_a_command_that_leaves_it(at: Callable[[str, str], Hourly], name: str) -> None:
    case = CASES[name]
    for choice, said in case.says.items():
        hourly = at(case.state, case.cut)
        case.gone(hourly)
        before = hourly.everything()
        if isinstance(said, str):
            with pytest.raises(RefusedError) as refused:
                hourly.end(choice, 2)
            assert refused.value.id == said, str(refused.value)
            assert hourly.everything() == before
            continue
        hourly.end(choice, 2)
        with hourly.metastore() as metastore:
            live = metastore.active_checkpoint(NAME)
            states = {each.generation: each.state for each in metastore.generations(NAME)}
        assert live is not None
        assert live.generation == said
        assert set(states.values()) <= {"live", "retired"}
        assert hourly.rows() == {1: OLD, 2: NEW}[int(said)]
        if "quarantine" not in name:
            assert [row["generation"] for row in hourly.quarantined(NAME)] == [said]


@pytest.mark.parametrize(
    ("state", "cut", "on", "back"),
    [("compared", HALF, "approve", "discard"), ("swapped", HALF_BACK, "rollback", "approve")],
)
def test_a_table_that_cannot_be_reached_leaves_both_ways_open(
    at: Callable[[str, str], Hourly], state: str, cut: str, on: str, back: str
) -> None:
    hourly = at(state, cut)
    table = hourly.storage / OUTPUT
    aside = table.rename(hourly.root / "aside")
    for choice, number in ((on, 2), (back, 3)):
        with suppress(DrawdownError):
            hourly.end(choice, number)
        error = hourly.drain(NAME)[0].error
        assert error is not None
        assert error.id == "rebuild.unfinished"
        assert f"drawdown rebuild {on} hourly" in error.do
        assert f"drawdown rebuild {back} hourly" in error.do
    aside.rename(table)
    hourly.end(on, 4)
    assert hourly.rows() == (NEW if on == "approve" else OLD)


def test_a_roll_back_that_was_taken_back_can_be_made_again(at: Callable[[str, str], Hourly]) -> None:
    hourly = at("swapped", HALF_BACK)
    hourly.end("approve", 2)
    assert [row["generation"] for row in hourly.quarantined(NAME)] == [2]
    hourly.end("rollback", 3)
    assert hourly.rows() == OLD
    assert [row["generation"] for row in hourly.quarantined(NAME)] == [1]


def test_a_run_that_died_days_ago_takes_nothing_of_the_old_generation_away(
    at: Callable[[str, str], Hourly],
) -> None:
    hourly = at("compared", "")
    with hourly.metastore() as metastore:
        metastore.start_run(Run("dead", NAME, holder="gone"))
        metastore.of_rebuilds.start_run(Run("dead-too", NAME, kind="rebuild", holder="gone"))
    with sqlite3.connect(hourly.root / "metastore.db") as store:
        store.execute("UPDATE runs SET started_at = 0 WHERE run_id LIKE 'dead%'")
    hourly.end("approve")
    with hourly.metastore() as metastore:
        assert [metastore.run(each).state for each in ("dead", "dead-too")] == ["crashed", "crashed"]  # type: ignore[union-attr]
    hourly.arrive_and_run(3, THIRD)
    old = DeltaTable(str(hourly.storage / OUTPUT), version=1).file_uris()
    assert old
    assert all(Path(file).exists() for file in old)
    hourly.end("rollback", 2)
    assert hourly.rows() == OLD


@pytest.mark.full
def test_a_shadow_that_read_on_and_was_not_compared_again_is_not_swapped_in(
    at: Callable[[str, str], Hourly],
) -> None:
    hourly = at("compared", "")
    hourly.arrive(3, THIRD)
    with armed("fail before rebuild.compare"), pytest.raises(DrawdownError):
        hourly.rebuilt()
    before = hourly.everything()
    with pytest.raises(RefusedError) as refused:
        hourly.end("approve")
    assert refused.value.id == "rebuild.not-compared"
    assert hourly.everything() == before
    hourly.rebuilt()
    hourly.end("approve", 2)
    assert hourly.rows() == sums(FIRST + SECOND + THIRD, "02T11")
