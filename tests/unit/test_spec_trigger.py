"""Triggers as `watch` takes them: Spark's own words, and a reason where one is refused."""

from __future__ import annotations

import pytest

from drawdown.errors import SpecError
from drawdown.spec.scheduling.trigger import AVAILABLE_NOW, parse_trigger


@pytest.mark.parametrize(
    ("text", "shown", "arguments"),
    [
        ("default", "default", {}),
        ("10 seconds", "10 seconds", {"processingTime": "10 seconds"}),
        ("continuous: 1 second", "continuous: 1 second", {"continuous": "1 second"}),
        ("continuous:1 second", "continuous: 1 second", {"continuous": "1 second"}),
        ("real-time: 5 minutes", "real-time: 5 minutes", {"realTime": "5 minutes"}),
    ],
)
def test_a_trigger_is_what_spark_takes(text: str, shown: str, arguments: dict[str, str]) -> None:
    trigger = parse_trigger(text)
    assert (str(trigger), trigger.arguments) == (shown, arguments)


def test_a_drain_has_available_now() -> None:
    assert AVAILABLE_NOW.arguments == {"availableNow": True}


@pytest.mark.parametrize(
    ("text", "id", "do"),
    [
        ("once", "trigger.once", "Available-now"),
        ("available-now", "trigger.available-now", "drawdown run"),
        ("", "trigger.unknown", "continuous: 1 second"),
        ("continuous", "trigger.unknown", "continuous: 1 second"),
        ("continuous: ", "trigger.unknown", "continuous: 1 second"),
        ("sometimes: 1 second", "trigger.unknown", "default"),
        ("1 month", "trigger.unknown", "10 seconds"),
        ("real-time: 4 seconds", "trigger.interval", "as they arrive"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(text: str, id: str, do: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_trigger(text)
    assert caught.value.id == id
    assert do in str(caught.value.do)
