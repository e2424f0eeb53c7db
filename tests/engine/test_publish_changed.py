"""`publish:` is changed while batches wait: these become visible as they were staged, and not otherwise."""

from __future__ import annotations

import pytest

from drawdown.errors import AuditFailed, RefusedError
from drawdown.held.decide import Choice, Decision, decide
from drawdown.metastore.records import Batch
from drawdown.plan.version_in_use import in_use
from drawdown.sinks.unnamed_files import remove_unnamed
from drawdown.spec import load_pipeline
from drawdown.workspace import Generation, Workspace
from tests.support.sandbox import Sandbox
from tests.support.verdicts import warnings

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: events.ddl}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: events.ddl, MODE, publish: PUBLISH}
state: {partitions: 2}
"""
QUALITY = """
expectations:
  - {type: expect_column_max_to_be_between, kwargs: {column: id, max_value: 10}}
"""
CRASHES = """\
  - {type: expect_column_values_to_match_regex, kwargs: {column: id, regex: "("}}
"""
MODES = ["mode: append", "mode: update, keys: [id]"]


def publishing(sandbox: Sandbox, publish: str, mode: str = MODES[0], quality: str = QUALITY) -> None:
    spec = SPEC.replace("PUBLISH", publish).replace("MODE", mode)
    files = {"events_ddl": "id INT", "transform_sql": "SELECT * FROM events", "quality_yaml": quality}
    sandbox.pipeline("events", spec, **files)


def arrive(sandbox: Sandbox, id: int) -> None:
    sandbox.land_json(f"landing/events/{id}.json", [{"id": id}], mtime=id)


def arrive_and_run(sandbox: Sandbox, id: int) -> None:
    arrive(sandbox, id)
    sandbox.drain("events")


def rows(sandbox: Sandbox) -> list[int]:
    return [row[0] for row in sandbox.delta("tables/events")]


def choose(sandbox: Sandbox, choice: Choice) -> None:
    with Workspace.open(sandbox.project) as workspace:
        pipeline = in_use(workspace, load_pipeline(sandbox.project, "events"))
        decide(workspace, pipeline, Decision(choice, f"{choice}-1", "this process", "ada", "looked at"))


def batches(sandbox: Sandbox) -> list[Batch]:
    with sandbox.metastore() as metastore:
        return metastore.batches("events", 1)


@pytest.mark.sampled
@pytest.mark.parametrize("choice", ["release", "discard"])
@pytest.mark.parametrize("mode", MODES)
def test_slices_that_wait_become_visible_before_anything_is_published_direct(
    sandbox: Sandbox, mode: str, choice: Choice
) -> None:
    publishing(sandbox, "audited", mode)
    arrive_and_run(sandbox, 99)
    arrive_and_run(sandbox, 1)
    publishing(sandbox, "direct", mode)
    warning = warnings(sandbox, "events")["sink.postponed"]
    assert "`publish: direct` takes effect once no older batch of events waits" in warning.what
    arrive_and_run(sandbox, 2)
    assert rows(sandbox) == [], "99 is held, and what follows waits behind it"
    choose(sandbox, choice)
    assert rows(sandbox) == ([1, 2, 99] if choice == "release" else [1, 2])
    assert "sink.postponed" not in warnings(sandbox, "events")
    arrive_and_run(sandbox, 98)
    assert 98 in rows(sandbox), "from here on rows are visible at once"
    assert [batch.treatment["publish"] for batch in batches(sandbox)] == [*["audited"] * 3, "direct"]


@pytest.mark.parametrize("fails", [False, True], ids=["passes", "fails"])
def test_rows_that_are_visible_stay_when_slices_are_audited_first_from_now_on(
    sandbox: Sandbox, fails: bool
) -> None:
    publishing(sandbox, "direct", quality=QUALITY + CRASHES)
    arrive(sandbox, 99 if fails else 1)
    with pytest.raises(AuditFailed) as crashed:
        sandbox.run("events")
    assert crashed.value.id == "audit.error"
    assert len(rows(sandbox)) == 1
    publishing(sandbox, "audited")
    before = rows(sandbox)
    sandbox.drain("events")
    with pytest.raises(RefusedError) as refused:
        choose(sandbox, "discard")
    assert refused.value.id in ("slice.none-held", "batch.published")
    assert rows(sandbox) == before
    arrive_and_run(sandbox, 98)
    assert rows(sandbox) == before, "held: the change has taken effect"
    choose(sandbox, "release")
    assert rows(sandbox) == sorted([*before, 98])


def test_a_file_that_the_table_names_is_never_deleted_whatever_the_records_say(sandbox: Sandbox) -> None:
    publishing(sandbox, "audited")
    arrive_and_run(sandbox, 99)
    with sandbox.metastore() as metastore:
        [held] = metastore.held_slices("events")
        older = metastore.staged_files("events", 1, held.batch_ids, table="output")
    choose(sandbox, "release")
    with Workspace.open(sandbox.project) as workspace:
        generation = Generation.of(workspace, load_pipeline(sandbox.project, "events"))
        remove_unnamed(generation, (file for _, file in older))
    assert rows(sandbox) == [99]
