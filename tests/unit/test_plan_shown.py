"""A plan at a terminal: the answer first, what matters next, the rest on request."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from drawdown.application.plan import Plan
from drawdown.cli.shown.plan import plan_parts
from drawdown.errors import RefusedError
from drawdown.plan.drain_fit import DrainFit
from drawdown.plan.preflight import Preflight
from drawdown.plan_verdicts import PlanVerdict

NOTE = PlanVerdict("note", "watermark.note", "a note that can wait")
ALLOWED = PlanVerdict("allowed", "checkpoint.change-allowed", "a filter has changed")
WARNING = PlanVerdict("warning", "join.unbounded", "state grows without end", do="add a time bound")
START = Plan(
    pipeline="sales",
    checkpoint=None,
    verdicts=(WARNING, NOTE),
    errors=(),
    operators=(),
    waiting=Preflight(True, ["source events: 1 new file"], {"events": {"files": 1, "bytes": 70}}),
    versions=None,
    state=None,
    fit=DrainFit("yes", 1, None, "it needs 1 batch"),
)
NOTHING = replace(START, verdicts=(), waiting=Preflight(False, [], {"events": {"files": 0}}))
REFUSED = replace(NOTHING, errors=(RefusedError("checkpoint.changed", "the window changed"),))


def shown(plan: Plan, *, verbose: bool = False) -> list[str]:
    console = Console(width=80, color_system=None)
    with console.capture() as captured:
        for part in plan_parts(plan, verbose=verbose):
            console.print(part)
    return captured.get().splitlines()


@pytest.mark.parametrize(
    ("plan", "answer", "first"),
    [
        (START, "start", "sales: the next run would start"),
        (NOTHING, "nothing", "sales: the next run has nothing to do"),
        (REFUSED, "refused", "sales: the next run would be refused; nothing would be changed"),
    ],
)
def test_the_first_line_is_the_answer(plan: Plan, answer: str, first: str) -> None:
    assert plan.as_dict()["answer"] == answer
    assert shown(plan)[0] == first


def test_a_warning_comes_next_and_notes_only_when_asked_for() -> None:
    lines = shown(START)
    assert lines[1].startswith("warning")
    assert not any("a note that can wait" in line for line in lines)
    assert lines[-1] == "1 note and the state: --verbose"
    everything = shown(START, verbose=True)
    assert any("a note that can wait" in line for line in everything)
    assert everything[-1] == "- source events: 1 new file"


def test_a_change_that_the_checkpoint_takes_is_shown_to_whom_made_it() -> None:
    lines = shown(replace(START, verdicts=(ALLOWED, NOTE)))
    assert any("a filter has changed" in line for line in lines)
    assert not any("a note that can wait" in line for line in lines)
