"""Remedies that name a nearest word: it is put in the place of the wrong one, and the error is gone."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.errors import DrawdownError
from tests.cli.test_bad_inputs import TABLES, changed, write
from tests.remedies.prompt import Said, typed

pytestmark = pytest.mark.capability("RIGHT-07")
_MEANT = re.compile(r"did you mean '([^']+)'\?")
_PLACE = re.compile(r"(include/[^:]+):(\d+)")
_WORDS = (re.compile(r"[\w.-]+"), re.compile(r"\w+"))


def _shown(said: Said) -> DrawdownError | None:
    """The only error of a command, if it names the nearest word."""
    if said.code == 0 or said.text.count("✗ ") != 1:
        return None
    error = said.error
    return error if _MEANT.search(f"{error.what} {error.do}") and _PLACE.fullmatch(error.where) else None


def _apply(root: Path, error: DrawdownError) -> tuple[str, str]:
    """Replace the word of the line that is nearest to the one that was meant; both words."""
    meant = _MEANT.findall(f"{error.what} {error.do}")[0]
    place = _PLACE.fullmatch(error.where)
    assert place is not None
    file, number = root / place[1], int(place[2]) - 1
    lines = file.read_text().splitlines(keepends=True)
    there = {word for words in _WORDS for word in words.findall(lines[number])} - {meant}
    words = sorted({word for word in there if word in error.what} or there)
    wrong = max(words, key=lambda word: difflib.SequenceMatcher(None, word.lower(), meant.lower()).ratio())
    lines[number] = lines[number].replace(wrong, meant, 1)
    file.write_text("".join(lines))
    return wrong, meant


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if "file" in table])
def test_the_word_that_is_named_is_taken(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("DRAWDOWN_PROJECT", raising=False)
    for number, case in enumerate(TABLES[name]["cases"], start=1):
        root, command = tmp_path / str(number), case.get("run", "validate")
        write(root, changed(TABLES[name], case))
        error = _shown(typed(root, command, spark))
        if error is None:
            continue
        wrong, meant = _apply(root, error)
        left = _shown(typed(root, command, spark))
        again = left is not None and (left.id, left.where, left.what) == (error.id, error.where, error.what)
        assert not again, f"{number}: {wrong} → {meant}: {error}"
