"""Which changes of a checkpoint a person may accept: other words of another version, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import RefusedError
from drawdown.plan.acceptance import accepted
from drawdown.plan.spec_changes import changes
from drawdown.spec import Pipeline
from tests.support.changes import EVENT, SPEC
from tests.support.sandbox import Sandbox

NOTED = {"sources.events": "json landing/events", "transform": "a", "state.partitions": 2}
SPARK = {"versions": {"spark": "4.2.0", "drawdown": "0.1.0"}}
LATER = {"versions": {"spark": "4.3.0", "drawdown": "0.1.0"}}


@pytest.fixture
def sales(tmp_path: Path) -> Pipeline:
    spec = SPEC.format(sink="format: parquet, path: tables/out", source="", suffix="sql")
    return Sandbox(tmp_path / "project").pipeline("sales", spec, event_ddl=EVENT, transform_sql="SELECT 1")


def keeps(value: str, key: str = "clicks.page string") -> dict[str, object]:
    return {"state.kept": [{"operator": "aggregate", "values": [value], "keys": [key]}]}


def test_other_words_of_another_version_can_be_accepted(sales: Pipeline) -> None:
    before, now = (
        {**NOTED, **SPARK, **keeps("count(1) bigint")},
        {**NOTED, **LATER, **keeps("count(*) bigint")},
    )
    assert accepted(sales, before, now) == {**before, **keeps("count(*) bigint")}
    assert [c.allowed for c in changes(accepted(sales, before, now), now)] == [True]


@pytest.mark.parametrize(
    ("now", "id"),
    [
        ({**LATER, **keeps("count(1) bigint")}, "accept.nothing"),
        ({**SPARK, **keeps("count(*) bigint")}, "accept.meaning"),
        ({**LATER, **keeps("count(*) bigint"), "transform": "another"}, "accept.meaning"),
        ({**LATER, **keeps("count(*) bigint"), "state.partitions": 4}, "accept.meaning"),
        ({**LATER, **keeps("max(1) bigint")}, "accept.meaning"),
        ({**LATER, **keeps("count(1) int")}, "accept.meaning"),
        ({**LATER, **keeps("count(1) bigint", "clicks.user string")}, "accept.meaning"),
        ({"versions": {"spark": "4.1.0"}, **keeps("count(*) bigint")}, "accept.meaning"),
    ],
)
def test_what_may_mean_something_else_is_not_accepted(
    sales: Pipeline, now: dict[str, object], id: str
) -> None:
    before = {**NOTED, **SPARK, **keeps("count(1) bigint")}
    with pytest.raises(RefusedError) as refused:
        accepted(sales, before, {**NOTED, **now})
    assert refused.value.id == id
