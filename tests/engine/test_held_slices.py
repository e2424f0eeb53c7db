"""A slice that failed its audit waits for a person: released or discarded, completely and once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest
from sqlalchemy import update

from drawdown.errors import AuditFailed, BusyError, RefusedError
from drawdown.held.decide import Choice, Decided, Decision, decide
from drawdown.metastore import Metastore
from drawdown.metastore.records import HeldSlice, Lease
from drawdown.metastore.tables import verdicts
from drawdown.spec import Pipeline, load_pipeline
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: events.ddl}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: events.ddl, publish: audited}
state: {partitions: 2}
"""
QUALITY = """
expectations:
  - {type: expect_column_max_to_be_between, kwargs: {column: id, max_value: 10}}
"""


class DiesAfterTheCommit(Metastore):
    """The process is killed when the table has its commit and the metastore does not know it yet."""

    def mark_published(
        self, lease: Lease, generation: int, batch_ids: Iterable[int], change_ids: Iterable[str] = ()
    ) -> None:
        raise KeyboardInterrupt


def checked(sandbox: Sandbox) -> None:
    """The pipeline, whose audit fails for ids above 10."""
    sandbox.pipeline(
        "events", SPEC, events_ddl="id INT", transform_sql="SELECT * FROM events", quality_yaml=QUALITY
    )


@pytest.fixture
def held(sandbox: Sandbox) -> Sandbox:
    """Row 1 is published, row 99 held back, row 2 passed its audit and waits behind it."""
    checked(sandbox)
    sandbox.land_json("landing/events/a.json", [{"id": 1}], mtime=1)
    sandbox.run("events")
    sandbox.land_json("landing/events/b.json", [{"id": 99}], mtime=2)
    with pytest.raises(AuditFailed):
        sandbox.run("events")
    sandbox.land_json("landing/events/c.json", [{"id": 2}], mtime=3)
    sandbox.run("events")
    assert rows(sandbox) == [1]
    return sandbox


def test_a_release_publishes_the_slice_and_what_waits_behind_it(held: Sandbox) -> None:
    decided = choose(held, "release")
    assert (decided.rows, decided.published.rows) == (1, 2)
    assert rows(held) == [1, 2, 99]
    with pytest.raises(RefusedError, match="has no held slice"):
        choose(held, "release")
    assert held.drain("events")[0].run is None
    with held.metastore() as metastore:
        run = metastore.runs("events")[0]
    assert (run.kind, run.state, run.counts.published) == ("release", "succeeded", 2)
    assert (run.origin["by"], run.origin["why"]) == ("ada", "looked at")


def test_a_discarded_slice_is_gone_and_what_waited_is_visible(held: Sandbox) -> None:
    before = {path for path in held.snapshot() if path.endswith(".parquet")}
    assert choose(held, "discard").published.rows == 1
    assert rows(held) == [1, 2]
    assert len(before - set(held.snapshot())) == 1, "the file of row 99"
    held.land_json("landing/events/d.json", [{"id": 3}], mtime=4)
    held.run("events")
    assert rows(held) == [1, 2, 3], "row 99 is not read again"


def test_a_release_that_dies_half_way_can_only_be_completed(held: Sandbox) -> None:
    with DiesAfterTheCommit.open(held.project.metastore_url) as dying, pytest.raises(KeyboardInterrupt):
        decide(Workspace(held.project, dying), pipeline(held), decision("release", "r1"))
    assert rows(held) == [1, 99]
    with pytest.raises(RefusedError) as refused:
        choose(held, "discard")
    assert refused.value.id == "slice.visible"
    assert rows(held) == [1, 99]
    choose(held, "release", "r3")
    assert rows(held) == [1, 2, 99]


def test_each_held_slice_is_decided_about_by_itself_and_in_order(held: Sandbox) -> None:
    held.land_json("landing/events/d.json", [{"id": 77}], mtime=4)
    with pytest.raises(AuditFailed):
        held.run("events")
    first, second = slices(held)
    assert (first.batch_ids, second.batch_ids, second.rows) == ([1], [3], 1)
    with pytest.raises(RefusedError) as refused:
        choose(held, "release", key=second.key)
    assert refused.value.id == "slice.out-of-order"
    assert rows(held) == [1]
    choose(held, "release", key=first.key)
    assert rows(held) == [1, 2, 99], "and what waited between the two"
    with pytest.raises(RefusedError, match="was released by ada") as late:
        choose(held, "discard", "r3", key=first.key)
    assert late.value.id == "slice.decided"
    choose(held, "discard", "r4", key=second.key)
    assert rows(held) == [1, 2, 99]


def test_where_the_pipeline_says_so_what_passes_does_not_wait(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "events",
        SPEC.replace("publish: audited", "ordered: false"),
        events_ddl="id INT",
        transform_sql="SELECT * FROM events",
        quality_yaml=QUALITY,
    )
    for wave, number in enumerate([1, 98, 2, 99]):
        sandbox.land_json(f"landing/events/{wave}.json", [{"id": number}], mtime=wave + 1)
        sandbox.drain("events")
    assert rows(sandbox) == [1, 2]
    assert sandbox.drain("events")[0].run is None, "a held slice is no work"
    first, second = slices(sandbox)
    with DiesAfterTheCommit.open(sandbox.project.metastore_url) as dying, pytest.raises(KeyboardInterrupt):
        decide(Workspace(sandbox.project, dying), pipeline(sandbox), decision("release", "r1", second.key))
    assert rows(sandbox) == [1, 2, 99]
    choose(sandbox, "release", "r2", key=second.key)
    assert rows(sandbox) == [1, 2, 99], "once"
    choose(sandbox, "release", "r3", key=first.key)
    assert rows(sandbox) == [1, 2, 98, 99], "although later batches were visible before it"
    sandbox.land_json("landing/events/9.json", [{"id": 3}], mtime=9)
    sandbox.run("events")
    assert rows(sandbox) == [1, 2, 3, 98, 99]


@pytest.mark.full
def test_a_term_is_warned_of_before_it_ends_and_fails_every_run_after_it(sandbox: Sandbox) -> None:
    project_yaml = sandbox.root / "include" / "project.yaml"
    project_yaml.write_text(project_yaml.read_text() + "held: 1 hour\n")
    hold_one(sandbox)
    sandbox.land_json("landing/events/b.json", [{"id": 1}], mtime=2)
    assert sandbox.run("events").notices == [], "half of the term is not over"
    for minutes, wave in ((40, "c"), (70, "d")):
        with sandbox.metastore() as metastore:
            lease = metastore.acquire("events", "this process", "r0", timedelta(minutes=1))
            earlier = metastore.now() - timedelta(minutes=minutes)
            with metastore.fenced(lease) as conn:
                conn.execute(update(verdicts).values(created_at=earlier))
            metastore.release(lease)
        sandbox.land_json(f"landing/events/{wave}.json", [{"id": 2}], mtime=minutes)
        if minutes < 60:
            [notice] = sandbox.run("events").notices
            assert notice["id"] == "slice.waits"
            assert "batch 0 (1 row) has been held since" in notice["what"]
            continue
        with pytest.raises(AuditFailed, match="its term ended") as overdue:
            sandbox.run("events")
        assert overdue.value.id == "slice.overdue"
    assert rows(sandbox) == [], "nothing is published by itself"
    choose(sandbox, "release")
    assert rows(sandbox) == [1, 2, 2, 99], "nor was anything dropped, and the late runs have staged"


def hold_one(sandbox: Sandbox) -> None:
    """Row 99 is held, and nothing was there before it."""
    checked(sandbox)
    sandbox.land_json("landing/events/a.json", [{"id": 99}], mtime=1)
    with pytest.raises(AuditFailed):
        sandbox.run("events")


def test_nothing_is_decided_while_a_run_holds_the_lease(held: Sandbox) -> None:
    with held.metastore() as metastore:
        metastore.acquire("events", "another process", "r0", timedelta(minutes=1))
    with pytest.raises(BusyError):
        choose(held, "release")
    assert rows(held) == [1]


@pytest.mark.sampled
@pytest.mark.parametrize("choice", ["release", "discard"])
@pytest.mark.parametrize("mode", ["update, keys: [k]", "complete"])
def test_what_passed_waits_behind_a_held_slice_in_every_mode(
    sandbox: Sandbox, mode: str, choice: Choice
) -> None:
    sandbox.pipeline(
        "events",
        SPEC.replace("schema: events.ddl, publish: audited", f"schema: totals.ddl, mode: {mode}"),
        events_ddl="id INT, k STRING",
        totals_ddl="id BIGINT, k STRING",
        transform_sql="SELECT sum(id) AS id, k FROM events GROUP BY k",
        quality_yaml=QUALITY + "  - {type: expect_column_values_to_be_unique, kwargs: {column: k}}\n",
    )
    for wave, changes in enumerate([{"a": 1}, {"a": 98}, {"a": -98, "b": 2}]):
        arriving = [{"id": change, "k": k} for k, change in changes.items()]
        sandbox.land_json(f"landing/events/{wave}.json", arriving, mtime=wave + 1)
        sandbox.drain("events")
        assert sandbox.delta("tables/events") == [(1, "a")]
    assert choose(sandbox, choice).published.batch_ids == ((1, 2) if choice == "release" else (2,))
    assert sandbox.delta("tables/events") == [(1, "a"), (2, "b")], "the last batch wins either way"
    sandbox.land_json("landing/events/9.json", [{"id": 1, "k": "b"}], mtime=9)
    sandbox.run("events")
    assert sandbox.delta("tables/events") == [(1, "a"), (3, "b")]


def choose(sandbox: Sandbox, choice: Choice, run_id: str = "r2", key: str | None = None) -> Decided:
    with sandbox.metastore() as metastore:
        return decide(Workspace(sandbox.project, metastore), pipeline(sandbox), decision(choice, run_id, key))


def decision(choice: Choice, run_id: str, key: str | None = None) -> Decision:
    return Decision(choice, run_id, "this process", "ada", "looked at", key)


def slices(sandbox: Sandbox) -> list[HeldSlice]:
    with sandbox.metastore() as metastore:
        return metastore.held_slices("events")


def pipeline(sandbox: Sandbox) -> Pipeline:
    return load_pipeline(sandbox.project, "events")


def rows(sandbox: Sandbox) -> list[int]:
    return [row[0] for row in sandbox.delta("tables/events")]
