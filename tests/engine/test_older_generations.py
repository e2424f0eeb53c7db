"""A metastore put back from before a rebuild, its swap or its roll back: no row comes twice, none is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from drawdown.errors import RefusedError
from drawdown.spec import load_pipeline
from drawdown.upkeep.all_pipelines import tidy_all
from drawdown.workspace import Workspace
from tests.support.older_copy import copy_of
from tests.support.rebuilds import FIRST, SECOND, SPEC, SUMS, THIRD, Hourly, sums
from tests.support.recovering import fix

NAME = "hourly"


def next_version(hourly: Hourly) -> None:
    """Ten times the sums, in the same columns: nothing else tells whose rows the table has."""
    there = hourly.root / "include/pipelines" / NAME
    (there / "next").mkdir()
    files = {"pipeline.yaml": SPEC, "transform.sql": SUMS.replace("sum(n)", "10 * sum(n)")}
    for name in ("events.ddl", "hourly.ddl"):
        files[name] = (there / name).read_text()
    for name, text in files.items():
        (there / "next" / name).write_text(text)


def tenfold(events: list[dict[str, Any]], until: str) -> Counter[tuple[Any, ...]]:
    found = sums(events, until, by_key=False)
    return Counter((hour, 10 * total) for hour, total in found.elements())


def refused(hourly: Hourly, what: Callable[[], object]) -> RefusedError:
    """It ends with `metastore.behind`, and the table and its files are what they were."""
    before, files = hourly.rows(), data_of(hourly)
    with pytest.raises(RefusedError) as error:
        what()
    assert error.value.id == "metastore.behind", error.value
    assert (hourly.rows(), data_of(hourly)) == (before, files)
    return error.value


def data_of(hourly: Hourly) -> list[str]:
    return [name for name in hourly.snapshot() if name.endswith(".parquet") and "/hourly/" in name]


@pytest.mark.full
def test_a_swap_that_the_metastore_does_not_know_is_told_by_the_table(hourly: Hourly) -> None:
    hourly.live_version()
    hourly.arrive_and_run(1, FIRST)
    before_the_rebuild = copy_of(hourly, "first.db")
    next_version(hourly)
    hourly.rebuilt()
    before_the_swap = copy_of(hourly, "second.db")
    hourly.end("approve")
    hourly.arrive_and_run(2, SECOND)
    assert hourly.rows() == tenfold(FIRST + SECOND, "02T09")

    before_the_rebuild()
    error = refused(hourly, lambda: hourly.run(NAME))
    assert "generation 2 was swapped in" in error.what
    assert "a new pipeline folder" in error.do
    refused(hourly, lambda: hourly.rebuilt())

    before_the_swap()
    with hourly.metastore() as metastore:
        workspace = Workspace(hourly.project, metastore)
        [done] = tidy_all(workspace, [load_pipeline(hourly.project, NAME)], {}, iter(["upkeep-1"]).__next__)
    assert "generation 2 was swapped in" in " ".join(done.notes)
    error = refused(hourly, lambda: hourly.run(NAME))
    assert f"`drawdown rebuild approve {NAME} --why ...`" in error.do
    refused(hourly, lambda: hourly.end("discard"))
    assert hourly.end("approve", 2).generation == 2
    error = refused(hourly, lambda: hourly.run(NAME))
    fix(hourly, error.do)
    run = hourly.run(NAME)
    assert (run.generation, run.counts.read) == (2, len(SECOND))
    assert hourly.rows() == tenfold(FIRST + SECOND, "02T09")

    before_the_roll_back = copy_of(hourly, "third.db")
    hourly.end("rollback")
    back = sums(FIRST, "02T07", by_key=False)
    assert hourly.rows() == back, "as it was before the swap, although that was noted after it"
    before_the_roll_back()
    hourly.arrive(3, THIRD)
    error = refused(hourly, lambda: hourly.run(NAME))
    assert f"`drawdown rebuild rollback {NAME} --why ...`" in error.do
    assert hourly.end("rollback", 2).generation == 1
    run = hourly.run(NAME)
    assert (run.generation, run.counts.read) == (1, len(SECOND + THIRD))
    assert hourly.rows() == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)
