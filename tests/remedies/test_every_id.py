"""Every id of the registry has a state in which its remedy is walked, or says why it has none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import tests.remedies.states  # noqa: F401  registers them
from drawdown.error_registry import error_entries
from tests.remedies.registry import STATES

pytestmark = pytest.mark.capability("RIGHT-07")

OTHERS: dict[str, list[str]] = yaml.safe_load(Path(__file__).with_name("others.yaml").read_text())
OPEN = 30
"""No more than so many are left; lower it with each state that is made."""


def test_every_id_is_in_one_place() -> None:
    made = {state.id for state in STATES.values()}
    listed = [id for ids in OTHERS.values() for id in ids]
    assert len(listed) == len(set(listed))
    assert made & set(listed) == set(), "it has a state: take it out of others.yaml"
    assert made | set(listed) == set(error_entries())


def test_a_remedy_that_names_a_command_is_walked() -> None:
    entries = error_entries()
    without = [id for category in ("edit", "outside", "told") for id in OTHERS[category]]
    assert [id for id in without if re.search(r"`drawdown [a-z]", entries[id].remedy)] == []
    assert len(OTHERS["open"]) == OPEN
