"""A metastore put back from before a rebuild, its swap or its roll back: no row comes twice, none is lost."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from drawdown.errors import RefusedError
from drawdown.spec import load_pipeline
from drawdown.upkeep.everything import tidy_all
from drawdown.workspace import Workspace
from tests.support.rebuilds import (
    SPEC,
    SUMS,
    end,
    event,
    land,
    live_version,
    rebuilt,
    rows,
    sums,
)
from tests.support.recovering import fix
from tests.support.sandbox import Sandbox

NAME = "hourly"
FIRST = [event("02T06:10", 1), event("02T06:20", 2, "b"), event("02T07:30", 4)]
SECOND = [event("02T08:10", 8, "b"), event("02T09:10", 16)]
THIRD = [event("02T09:50", 32, "b"), event("02T11:10", 64)]


def next_version(sandbox: Sandbox) -> None:
    """Ten times the sums, in the same columns: nothing else tells whose rows the table has."""
    there = sandbox.root / "include/pipelines" / NAME
    (there / "next").mkdir()
    files = {"pipeline.yaml": SPEC, "transform.sql": SUMS.replace("sum(n)", "10 * sum(n)")}
    for name in ("events.ddl", "hourly.ddl"):
        files[name] = (there / name).read_text()
    for name, text in files.items():
        (there / "next" / name).write_text(text)


def tenfold(events: list[dict[str, Any]], until: str) -> Counter[tuple[Any, ...]]:
    found = sums(events, until, by_key=False)
    return Counter((hour, 10 * total) for hour, total in found.elements())


def copy_of(sandbox: Sandbox, name: str) -> Callable[[], None]:
    """Back up the metastore by SQLite's own means; gives what puts it back."""
    live, kept = sandbox.root / "metastore.db", sandbox.root / name

    def put(old: Any, new: Any) -> None:
        with sqlite3.connect(old) as source, sqlite3.connect(new) as target:
            source.backup(target)

    put(live, kept)
    return lambda: put(kept, live)


def refused(sandbox: Sandbox, what: Callable[[], object]) -> RefusedError:
    """It ends with `metastore.behind`, and the table and its files are what they were."""
    before, files = rows(sandbox), data_of(sandbox)
    with pytest.raises(RefusedError) as error:
        what()
    assert error.value.id == "metastore.behind", error.value
    assert (rows(sandbox), data_of(sandbox)) == (before, files)
    return error.value


def data_of(sandbox: Sandbox) -> list[str]:
    return [name for name in sandbox.snapshot() if name.endswith(".parquet") and "/hourly/" in name]


@pytest.mark.full
def test_a_swap_that_the_metastore_does_not_know_is_told_by_the_table(sandbox: Sandbox) -> None:
    live_version(sandbox)
    land(sandbox, 1, FIRST)
    sandbox.run(NAME)
    before_the_rebuild = copy_of(sandbox, "first.db")
    next_version(sandbox)
    rebuilt(sandbox)
    before_the_swap = copy_of(sandbox, "second.db")
    end(sandbox, "approve")
    land(sandbox, 2, SECOND)
    sandbox.run(NAME)
    assert rows(sandbox) == tenfold(FIRST + SECOND, "02T09")

    before_the_rebuild()
    error = refused(sandbox, lambda: sandbox.run(NAME))
    assert "generation 2 was swapped in" in error.what
    assert "a new pipeline folder" in error.do
    refused(sandbox, lambda: rebuilt(sandbox))

    before_the_swap()
    with sandbox.metastore() as metastore:
        workspace = Workspace(sandbox.project, metastore)
        [done] = tidy_all(workspace, [load_pipeline(sandbox.project, NAME)], {}, iter(["upkeep-1"]).__next__)
    assert "generation 2 was swapped in" in " ".join(done.notes)
    error = refused(sandbox, lambda: sandbox.run(NAME))
    assert f"`drawdown rebuild approve {NAME} --why ...`" in error.do
    refused(sandbox, lambda: end(sandbox, "discard"))
    assert end(sandbox, "approve", 2).generation == 2
    error = refused(sandbox, lambda: sandbox.run(NAME))
    fix(sandbox, error.do)
    run = sandbox.run(NAME)
    assert (run.generation, run.counts.read) == (2, len(SECOND))
    assert rows(sandbox) == tenfold(FIRST + SECOND, "02T09")

    before_the_roll_back = copy_of(sandbox, "third.db")
    end(sandbox, "rollback")
    back = sums(FIRST, "02T07", by_key=False)
    assert rows(sandbox) == back, "as it was before the swap, although that was noted after it"
    before_the_roll_back()
    land(sandbox, 3, THIRD)
    error = refused(sandbox, lambda: sandbox.run(NAME))
    assert f"`drawdown rebuild rollback {NAME} --why ...`" in error.do
    assert end(sandbox, "rollback", 2).generation == 1
    run = sandbox.run(NAME)
    assert (run.generation, run.counts.read) == (1, len(SECOND + THIRD))
    assert rows(sandbox) == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)
