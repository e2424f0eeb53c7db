"""How many workers a backlog gets."""

from __future__ import annotations

from typing import Any

import pytest

from drawdown.launch.sizing import workers_for
from drawdown.spec import StandaloneCluster

EACH = {"bytes": "1m", "offsets": 1_000}


def profile(workers: Any) -> StandaloneCluster:
    return StandaloneCluster.model_validate({"kind": "standalone", "workers": workers})


def test_a_number_is_that_number_whatever_waits() -> None:
    assert workers_for(profile(3), [{"flights": {"bytes": 10**12}}]) == 3


@pytest.mark.parametrize(
    ("backlog", "workers"),
    [
        ({}, 1),
        ({"flights": {"files": 0, "bytes": 0}}, 1),
        ({"flights": {"files": 9, "bytes": 2**20}}, 1),
        ({"flights": {"files": 9, "bytes": 2**20 + 1}}, 2),
        ({"flights": {"bytes": 2**20}, "planes": {"bytes": 2**20}}, 2),
        ({"flights": {"bytes": 2**40}}, 4),
        ({"weather": {"offsets": {"weather": 1_500, "gusts": 700}}}, 3),
        ({"flights": {"bytes": 2**21}, "weather": {"offsets": {"weather": 2_500}}}, 3),
    ],
)
def test_the_unit_that_asks_for_most_decides_within_the_bounds(
    backlog: dict[str, dict[str, Any]], workers: int
) -> None:
    assert workers_for(profile({"min": 1, "max": 4, "each": EACH}), [backlog]) == workers


def test_the_backlogs_of_a_group_add_up() -> None:
    waiting = {"flights": {"bytes": 2**20}}
    assert workers_for(profile({"max": 4, "each": EACH}), [waiting, waiting, waiting]) == 3


@pytest.mark.parametrize("found", [{}, {"versions": 1}, {"files": 1}])
def test_a_source_that_nobody_has_counted_in_these_units_may_be_anything(found: dict[str, int]) -> None:
    assert workers_for(profile({"max": 4, "each": {"offsets": 5}}), [{"tables": found}]) == 4


def test_what_reads_something_else_than_the_backlog_may_be_anything() -> None:
    assert workers_for(profile({"max": 4, "each": EACH}), None) == 4
    assert workers_for(profile(2), None) == 2


def test_there_are_never_fewer_than_the_least() -> None:
    assert workers_for(profile({"min": 2, "max": 4, "each": EACH}), [{}]) == 2
