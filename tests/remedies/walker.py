"""Walks every way of a remedy: its commands succeed as printed, and the pipeline runs again."""

from __future__ import annotations

import json
from collections import Counter

from tests.remedies.ground import Ground
from tests.remedies.registry import Made, State
from tests.remedies.remedy import Way, ways

_LOOKS = (("checkpoint", "verify"), ("plan",), ("doctor",), ("validate",))
"""Commands that say what is wrong, and end with the code of it."""
_RUNS = 5


def walk(ground: Ground, state: State) -> int:
    """Make the state once for each way of its remedy, and walk it; returns how many ways led on."""
    walked, number, count = 0, 0, 1
    while number < count:
        made = state.make(ground)
        assert made.error.id == state.id, str(made.error)
        assert made.error.do, f"{state.name} has no remedy"
        each = ways(made.error.do, made.hands, made.fill)
        count, way, number = len(each), each[number], number + 1
        if any(phrase in way.text for phrase in made.outside):
            continue
        assert way.steps, f"{state.name}: nothing is done by: {way.text}"
        _walk(ground, made, way)
        walked += 1
    assert walked, f"{state.name}: no way of its remedy can be walked"
    return walked


def _walk(ground: Ground, made: Made, way: Way) -> None:
    about = f"{made.error}\n  way:   {way.text}"
    for step in way.steps:
        if isinstance(step, str):
            made.hands[step]()
            ground.forget()
        else:
            _type(ground, made, step, about)
    made.after()
    if made.again:
        said = ground.type(made.again)
        assert said.code == 0, f"{about}\n  again: drawdown {made.again}\n{said.text}"
    if made.goes_on is not None:
        made.goes_on()
        return
    for name in made.names:
        _drain(ground, name, about)
    if made.wanted is not None:
        wanted = next(
            rows for phrase, rows in sorted(made.wanted.items(), reverse=True) if phrase in way.text
        )
        assert ground.ids() == Counter(wanted), about


def _type(ground: Ground, made: Made, words: tuple[str, ...], about: str) -> None:
    """Type a command. One that looks may find what is wrong, and its own remedy is followed."""
    said = ground.type(words)
    if said.code == 0:
        return
    looks = any(words[: len(look)] == look for look in _LOOKS)
    assert looks, f"{about}\n  typed: drawdown {' '.join(words)}: {said.code}\n{said.text}"
    found = _planned(ground, words) if words[0] == "plan" else said.error.do
    for way in ways(found, made.hands, made.fill):
        if way.steps and not any(phrase in way.text for phrase in made.outside):
            for step in way.steps:
                if isinstance(step, str):
                    made.hands[step]()
                else:
                    again = ground.type(step)
                    assert again.code == 0, f"{about}\n  then:  {found}\n{again.text}"
            return
    raise AssertionError(f"{about}\n  then:  {found}")


def _planned(ground: Ground, words: tuple[str, ...]) -> str:
    """The remedy of what a plan refuses first."""
    shown = json.loads(ground.type((*words, "--json")).text)["data"]
    return next(str(each["do"]) for each in shown["verdicts"] if each["level"] == "refused")


def _drain(ground: Ground, name: str, about: str) -> None:
    """Until nothing is new: the pipeline runs again."""
    ground.forget()
    for _ in range(_RUNS):
        report = ground.sandbox.drain(name)[0]
        assert report.error is None, f"{about}\n  then:  {report.error}"
        if report.run is None:
            return
    raise AssertionError(f"{about}\n  {name} has work after {_RUNS} runs")
