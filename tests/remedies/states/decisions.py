"""Slices that are held, rows that are set aside, and decisions about them."""

from __future__ import annotations

from collections import Counter

import pytest

from drawdown.errors import DrawdownError
from drawdown.held.decide import Decision, decide
from drawdown.plan.version_in_use import in_use
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.remedies.ground import FAILS, NAME, RULE, SPEC, Ground
from tests.remedies.registry import Made, rows, state
from tests.support.deaths import die


@state("audit.fail", full=True)
def audit_fail(ground: Ground) -> Made:
    ground.new()
    ground.quality(FAILS)
    ground.land(1)
    error = ground.refused("audit.fail")
    ground.quality("rules: []\n")
    return Made(error, wanted={"": Counter([1]), "discard": Counter()})


@state("audit.error", full=True)
def audit_error(ground: Ground) -> Made:
    ground.new()
    regex = "expectations: [{type: expect_column_values_to_match_regex, kwargs: {column: id, regex: '('}}]\n"
    ground.quality(regex)
    ground.land(1)
    return Made(
        ground.refused("audit.error"),
        hands={"fix the expectation": lambda: ground.quality("rules: []\n")},
        wanted=rows(1),
    )


@state("slice.none-held")
def none_held(ground: Ground) -> Made:
    ground.drained()
    return Made(ground.fails("slice.none-held", f"release {NAME} --why ..."), wanted=rows(1, 2))


@state("slice.none-held/a batch")
def batch_not_held(ground: Ground) -> Made:
    ground.drained()
    return Made(ground.fails("slice.none-held", f"release {NAME} --batch 9 --why ..."), wanted=rows(1, 2))


@state("slice.decided")
def decided(ground: Ground) -> Made:
    """A decision that Airflow has asked for comes once another one was made at the prompt."""
    ground.held()
    with ground.sandbox.metastore() as metastore:
        [held] = metastore.held_slices(NAME)
    ground.well(f"release {NAME} --why ...")
    late = Decision("discard", "asked", "airflow", "ada", "late", key=held.key)
    with Workspace.open(ground.sandbox.project) as workspace:
        pipeline = in_use(workspace, load_pipeline(ground.sandbox.project, NAME))
        with pytest.raises(DrawdownError) as error:
            decide(workspace, pipeline, late)
    return Made(error.value, wanted=rows(1, 2))


@state("slice.visible")
def visible(ground: Ground) -> Made:
    ground.held()
    die(ground.sandbox, NAME, "before publish.note", "release --why x")
    return Made(ground.fails("slice.visible", f"discard {NAME} --why ..."), wanted=rows(1, 2))


@state("slice.out-of-order", full=True)
def out_of_order(ground: Ground) -> Made:
    ground.new()
    ground.quality(FAILS)
    for id in (1, 2):
        ground.land(id)
        ground.refused("audit.fail")
    ground.quality("rules: []\n")
    return Made(
        ground.fails("slice.out-of-order", f"release {NAME} --batch 1 --why ..."),
        hands={"decide about batch 0 first": lambda: ground.well(f"release {NAME} --batch 0 --why ...")},
        again=f"release {NAME} --batch 1 --why ...",
        wanted=rows(1, 2),
    )


@state("slice.overdue")
def overdue(ground: Ground) -> Made:
    ground.held()
    settings = ground.root / "include/project.yaml"
    settings.write_text(settings.read_text() + "held: 1 second\n")
    ground.land(3)
    return Made(ground.refused("slice.overdue"), wanted={"": Counter([1, 2, 3]), "discard": Counter([1, 3])})


@state("quarantine.none")
def quarantine_none(ground: Ground) -> Made:
    ground.new()
    ground.land(1)
    error = ground.fails("quarantine.none", f"quarantine replay {NAME} --why ...")
    return Made(error, again=f"quarantine replay {NAME} --why ...", wanted=rows(1))


@state("quarantine.unasked")
def quarantine_unasked(ground: Ground) -> Made:
    ground.new()
    ground.quality(RULE)
    ground.land(1, 95)
    ground.sandbox.run(NAME)
    command = f"quarantine drop {NAME} --why ..."
    return Made(ground.fails("quarantine.unasked", command), again=f"{command} --yes", wanted=rows(1))


@state("quarantine.one-key-twice", full=True)
def one_key_twice(ground: Ground) -> Made:
    spec = SPEC.replace("schema: out.ddl", "schema: out.ddl, mode: update, keys: [id]")
    ground.new(spec)
    ground.quality(RULE)
    for _ in range(2):
        ground.land(95)
        ground.sandbox.run(NAME)
    ground.quality("rules: []\n")
    replay = f"quarantine replay {NAME} --why ..."
    return Made(
        ground.fails("quarantine.one-key-twice", replay),
        fill={"BATCH": "1"},
        hands={"one after the other": lambda: ground.well(f"{replay} --batch 0")},
        again=replay,
        wanted=rows(95),
    )


@state("quarantine.unfinished", full=True)
def quarantine_unfinished(ground: Ground) -> Made:
    """A run died behind the note of its batch."""
    ground.new()
    ground.quality(RULE)
    ground.land(1, 95)
    ground.sandbox.run(NAME)
    ground.land(2)
    die(ground.sandbox, NAME, "after batch.note 1")
    ground.quality("rules: []\n")
    replay = f"quarantine replay {NAME} --why ..."
    return Made(ground.fails("quarantine.unfinished", replay), again=replay, wanted=rows(1, 2, 95))
