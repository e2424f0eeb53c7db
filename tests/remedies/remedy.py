"""A `do:` as a person reads it: its ways on, and in each the commands and what is done by hand, in order."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass

_WAYS = re.compile(
    r"[;,]\s+or\s*,?\s+|\.\s+Or\s+|\s+or\s+(?=`drawdown )|;\s+otherwise\s+|\s+\(or\s+(?=`drawdown )"
)
_COMMAND = re.compile(r"`(drawdown [^`]+)`|(?:^|: )(drawdown [a-z][^`]*)$")
"""In backticks; or the whole text, or its end."""
_OPEN = re.compile(r"[A-Z][A-Z_]*\b|\.\.\.")
WHY = ("--why", "...")


@dataclass(frozen=True)
class Way:
    """One way on.

    Attributes:
        text: as it is printed.
        steps: commands as words without `drawdown`, and phrases of what is done by hand.
    """

    text: str
    steps: tuple[tuple[str, ...] | str, ...]


def ways(do: str, by_hand: Collection[str] = (), fill: Mapping[str, str] | None = None) -> list[Way]:
    """Split a remedy.

    Args:
        by_hand: phrases that a state can carry out.
        fill: words that the text leaves open on purpose, such as PATH.
    """
    return [Way(part, tuple(_steps(part, by_hand, fill or {}))) for part in _WAYS.split(do) if part.strip()]


def _steps(part: str, by_hand: Collection[str], fill: Mapping[str, str]) -> list[tuple[str, ...] | str]:
    found: list[tuple[int, tuple[str, ...] | str]] = [
        (match.start(), _words(match[1] or match[2], fill)) for match in _COMMAND.finditer(part)
    ]
    found += [(part.index(phrase), phrase) for phrase in by_hand if phrase in part]
    return [step for _, step in sorted(found, key=lambda each: each[0])]


def _words(command: str, fill: Mapping[str, str]) -> tuple[str, ...]:
    """The words behind `drawdown`. Raises AssertionError for a placeholder that nobody can fill."""
    _, *words = shlex.split(command.partition(" #")[0])
    filled = []
    for before, word in zip(["", *words], words, strict=False):
        if (before, word) == WHY:
            word = "a test of remedies"
        elif word in fill:
            word = fill[word]
        else:
            assert not _OPEN.fullmatch(word), f"`{command}` leaves {word} open, and nothing says what it is"
        filled.append(word)
    return tuple(filled)
