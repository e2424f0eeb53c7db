"""Whatever is typed as a time, a length or a number of a command: it is taken, or is one error."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import pytest

from drawdown.cli import main
from drawdown.cli.commands import backfill
from tests.support import odd_values
from tests.support.fleet_records import FleetRecords
from tests.support.replayed_days import day, drained, replayable

pytestmark = pytest.mark.capability("SAFE-08")
COMMANDS = (
    ("backfill", "daily", "--from", "?", "--to", "?"),
    ("backfill", "daily", "--from", "2026-01-01", "--to", "?"),
    ("backfill", "daily", "--from", "2026-01-01", "--to", "2026-01-02", "--interval", "?"),
    ("runs", "daily", "--limit", "?"),
    ("checkpoint", "rewind", "daily", "--to", "?"),
    ("quarantine", "show", "daily", "--batch", "?"),
    ("quarantine", "show", "daily", "--limit", "?"),
    ("explain", "?"),
)


@pytest.mark.parametrize(
    "times", [12, pytest.param(1_000, marks=[pytest.mark.full, pytest.mark.timeout(900)])]
)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_odd_values_are_one_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    times: int,
) -> None:
    project = FleetRecords(tmp_path)
    replayable(project, "daily")
    drained(project, "daily", (day(1), day(2)), watermark=day(9))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # `main` leaves standard error in its place
    # What is taken would start Spark.
    monkeypatch.setattr(backfill, "_replay", lambda *_: ([], None))
    for number in range(times):
        chance = random.Random(f"{words} {number}")
        monkeypatch.setattr(sys, "argv", ["drawdown", *(_word(chance, word) for word in words)])
        with pytest.raises(SystemExit) as ended:
            main.main()
        said = capfd.readouterr().err
        assert not re.search(r"Traceback|cli\.unexpected", said), (sys.argv, said[:2_000])
        assert len(re.findall("^✗ ", said, re.MULTILINE)) == bool(ended.value.code), (sys.argv, said[:2_000])
        assert len(said) < 25_000


def _word(chance: random.Random, word: str) -> str:
    if word != "?":
        return word
    if chance.random() < 0.4:
        return odd_values.any_time(chance)
    # No argument of a program has a NUL.
    return odd_values.any_text(chance, (*odd_values.TIMES, *odd_values.NUMBERS)).replace("\0", "")
