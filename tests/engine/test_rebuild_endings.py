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

from drawdown import fault_points
from drawdown.errors import DrawdownError, RefusedError
from drawdown.fault_points import FAULT
from drawdown.metastore.records import Run
from tests.support.rebuilds import NAME, end, event, land, live_version, next_version, rebuilt, rows, sums
from tests.support.recovering import keep, put_back
from tests.support.sandbox import Sandbox

FIRST = [event("02T06:10", 1), event("02T06:20", 2, "b"), event("02T07:30", 4)]
SECOND = [event("02T08:10", 8, "b"), event("02T09:10", 16)]
THIRD = [event("02T09:50", 32, "b"), event("02T11:10", 64)]
OLD, NEW = sums(FIRST + SECOND, "02T09", by_key=False), sums(FIRST + SECOND, "02T09")
Kept = dict[str, tuple[Sandbox, Path]]


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A project with a rebuild that was compared, and the same after its swap; each has quarantine rows."""
    found: Kept = {}
    for state in ("compared", "swapped"):
        sandbox = Sandbox(tmp_path_factory.mktemp(state) / "project", spark)
        live_version(sandbox)
        land(sandbox, 1, FIRST + SECOND)
        sandbox.land("landing/events/2.json", ["{broken"], mtime=1_700_000_002)
        sandbox.run(NAME)
        next_version(sandbox)
        rebuilt(sandbox)
        if state == "swapped":
            end(sandbox, "approve", 0)
        found[state] = sandbox, keep(sandbox)
    return found


@pytest.fixture
def at(kept: Kept) -> Callable[[str, str], Sandbox]:
    """A copy of such a project, in which a command was then cut off by a fault."""

    def found(state: str, fault: str) -> Sandbox:
        sandbox, copy = kept[state]
        put_back(sandbox, copy)
        if fault:
            with armed(fault), pytest.raises(OSError, match="DRAWDOWN_FAULT"):
                end(sandbox, "approve" if state == "compared" else "rollback", 1)
        return sandbox

    return found


class armed:
    """A fault in this process."""

    def __init__(self, fault: str) -> None:
        self.patch, self.fault = pytest.MonkeyPatch(), fault

    def __enter__(self) -> None:
        self.patch.setenv(FAULT, self.fault)
        fault_points._armed.cache_clear()

    def __exit__(self, *_: object) -> None:
        self.patch.undo()
        fault_points._armed.cache_clear()


def files(sandbox: Sandbox, path: str, generation: int) -> list[Path]:
    """Data files that a generation has brought into a table."""
    table = sandbox.storage / path
    found = (table / f"_rebuild/{generation}" if generation > 1 else table / "data").rglob("*.parquet")
    return [file for file in found if "_delta_log" not in str(file)]


def vacuum(path: str, generation: int) -> Callable[[Sandbox], None]:
    def gone(sandbox: Sandbox) -> None:
        assert files(sandbox, path, generation)
        for file in files(sandbox, path, generation):
            file.unlink()

    return gone


def forget_first(sandbox: Sandbox) -> None:
    """A metastore that was pruned, or came from a copy."""
    with sqlite3.connect(sandbox.root / "metastore.db") as store:
        store.execute("DELETE FROM checkpoints WHERE generation = 1")


def prune_first(sandbox: Sandbox) -> None:
    shutil.rmtree(sandbox.storage / "_drawdown/hourly/checkpoint-1")


def nothing(sandbox: Sandbox) -> None:
    return None


OUTPUT, QUARANTINE = "tables/hourly", "quarantine/hourly"


@dataclass(frozen=True)
class Case:
    """`says`: by command the error that refuses it, changing nothing, or the generation that is live then."""

    state: str
    cut: str
    gone: Callable[[Sandbox], None]
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
def test_every_state_has_a_command_that_leaves_it(at: Callable[[str, str], Sandbox], name: str) -> None:
    case = CASES[name]
    for choice, said in case.says.items():
        sandbox = at(case.state, case.cut)
        case.gone(sandbox)
        before = sandbox.everything()
        if isinstance(said, str):
            with pytest.raises(RefusedError) as refused:
                end(sandbox, choice, 2)
            assert refused.value.id == said, str(refused.value)
            assert sandbox.everything() == before
            continue
        end(sandbox, choice, 2)
        with sandbox.metastore() as metastore:
            live = metastore.active_checkpoint(NAME)
            states = {each.generation: each.state for each in metastore.generations(NAME)}
        assert live is not None
        assert live.generation == said
        assert set(states.values()) <= {"live", "retired"}
        assert rows(sandbox) == {1: OLD, 2: NEW}[int(said)]
        if "quarantine" not in name:
            assert [row["generation"] for row in sandbox.quarantined(NAME)] == [said]


@pytest.mark.parametrize(
    ("state", "cut", "on", "back"),
    [("compared", HALF, "approve", "discard"), ("swapped", HALF_BACK, "rollback", "approve")],
)
def test_a_table_that_cannot_be_reached_leaves_both_ways_open(
    at: Callable[[str, str], Sandbox], state: str, cut: str, on: str, back: str
) -> None:
    sandbox = at(state, cut)
    table = sandbox.storage / OUTPUT
    aside = table.rename(sandbox.root / "aside")
    for choice, number in ((on, 2), (back, 3)):
        with suppress(DrawdownError):
            end(sandbox, choice, number)
        error = sandbox.drain(NAME)[0].error
        assert error is not None
        assert error.id == "rebuild.unfinished"
        assert f"drawdown rebuild {on} hourly" in error.do
        assert f"drawdown rebuild {back} hourly" in error.do
    aside.rename(table)
    end(sandbox, on, 4)
    assert rows(sandbox) == (NEW if on == "approve" else OLD)


def test_a_roll_back_that_was_taken_back_can_be_made_again(at: Callable[[str, str], Sandbox]) -> None:
    sandbox = at("swapped", HALF_BACK)
    end(sandbox, "approve", 2)
    assert [row["generation"] for row in sandbox.quarantined(NAME)] == [2]
    end(sandbox, "rollback", 3)
    assert rows(sandbox) == OLD
    assert [row["generation"] for row in sandbox.quarantined(NAME)] == [1]


def test_a_run_that_died_days_ago_takes_nothing_of_the_old_generation_away(
    at: Callable[[str, str], Sandbox],
) -> None:
    sandbox = at("compared", "")
    with sandbox.metastore() as metastore:
        metastore.start_run(Run("dead", NAME, holder="gone"))
        metastore.of_rebuilds.start_run(Run("dead-too", NAME, kind="rebuild", holder="gone"))
    with sqlite3.connect(sandbox.root / "metastore.db") as store:
        store.execute("UPDATE runs SET started_at = 0 WHERE run_id LIKE 'dead%'")
    end(sandbox, "approve")
    with sandbox.metastore() as metastore:
        assert [metastore.run(each).state for each in ("dead", "dead-too")] == ["crashed", "crashed"]  # type: ignore[union-attr]
    land(sandbox, 3, THIRD)
    sandbox.run(NAME)
    old = DeltaTable(str(sandbox.storage / OUTPUT), version=1).file_uris()
    assert old
    assert all(Path(file).exists() for file in old)
    end(sandbox, "rollback", 2)
    assert rows(sandbox) == OLD


@pytest.mark.full
def test_a_shadow_that_read_on_and_was_not_compared_again_is_not_swapped_in(
    at: Callable[[str, str], Sandbox],
) -> None:
    sandbox = at("compared", "")
    land(sandbox, 3, THIRD)
    with armed("fail before rebuild.compare"), pytest.raises(DrawdownError):
        rebuilt(sandbox)
    before = sandbox.everything()
    with pytest.raises(RefusedError) as refused:
        end(sandbox, "approve")
    assert refused.value.id == "rebuild.not-compared"
    assert sandbox.everything() == before
    rebuilt(sandbox)
    end(sandbox, "approve", 2)
    assert rows(sandbox) == sums(FIRST + SECOND + THIRD, "02T11")
