"""Every command that a text of the library names can be typed as it is printed."""

from __future__ import annotations

import pytest

from tests.remedies.printed import MENTIONS, commands, without_backticks, wrong_in

pytestmark = pytest.mark.capability("RIGHT-07")


def test_a_printed_command_is_whole() -> None:
    """It has the arguments and options without which the command line would refuse it."""
    found = [(place, command) for place, command in commands() if command not in MENTIONS]
    assert len(found) > 250
    assert [(place, command, wrong) for place, command in found if (wrong := wrong_in(command))] == []


def test_what_is_missing_is_found() -> None:
    assert wrong_in("release VALUE") == "it lacks --why"
    assert wrong_in("checkpoint restore VALUE") == "it lacks snapshot"
    assert wrong_in("checkpoint rewind VALUE --to") == "--to has no value"
    assert wrong_in("checkpoint frob VALUE") == "checkpoint has no frob"
    assert wrong_in("run VALUE --frob") == "it does not take --frob"
    assert wrong_in("release VALUE --why ...") is None


def test_a_command_within_a_sentence_is_in_backticks() -> None:
    """Without them nobody can tell where it ends."""
    assert without_backticks() == []
