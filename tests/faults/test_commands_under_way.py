"""A second command amid a first one that runs or died: it is refused or finishes it, and no row is lost.

The table is that of docs/recovery.md. Each pair starts from a copy of the project in that state.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.spark import ROOT
from tests.support.under_way import COMMANDS, LIVE, STATES, WAITS, Project

DELTA = "format: delta, path: tables/out, schema: out.ddl, time_column: at"
ALWAYS = ("a rewind that died behind a held slice", "a rename that died")


def table() -> dict[str, dict[str, str]]:
    """By what is under way and command: ``done``, ``waits``, or the id of the refusal."""
    page = (ROOT / "docs/recovery.md").read_text().partition("## A second command")[2].partition("\n## ")[0]
    found: dict[str, dict[str, str]] = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 3 or cells[0] in ("Under way", "---"):
            continue
        state, done, refused = cells
        found[state] = dict.fromkeys(_commands(done), "done")
        for id, commands in re.findall(r"`([a-z.-]+)`: ([^;]+)", refused):
            found[state] |= dict.fromkeys(_commands(commands), id)
    return found


def _commands(cell: str) -> list[str]:
    return [each.strip() for each in cell.split(",") if each.strip() not in ("", "-")]


@pytest.mark.capability("RIGHT-06")
def test_the_table_has_every_pair() -> None:
    found = table()
    assert [*found] == [*STATES, *LIVE]
    assert {state: {*COMMANDS} ^ {*row} for state, row in found.items() if {*COMMANDS} ^ {*row}} == {}


@pytest.mark.capability("RIGHT-06")
@pytest.mark.parametrize(
    "state",
    [each if each in ALWAYS else pytest.param(each, marks=pytest.mark.full) for each in (*STATES, *LIVE)],
)
def test_a_second_command(tmp_path: Path, spark: SparkSession, state: str) -> None:
    on = Project(tmp_path / "project", spark, DELTA)
    if state in STATES:
        STATES[state](on)
    kept, landed, ids = on.keep(), on.landed, list(on.ids)
    said = {}
    for command, do in COMMANDS.items():
        if (state, command) in WAITS:
            said[command] = "waits"
            continue
        on.put_back(kept)
        on.landed, on.ids = landed, list(ids)
        ended = LIVE[state](on, command) if state in LIVE else do(on)
        said[command] = ended.id or "done"
        on.led_out()
        on.released()
        gone = command == "discard" and ended.error is None
        wanted = {id: 1 for id in on.ids if not (gone and id > 2)}
        found = on.in_sink()
        assert found.pop(95, 1) == 1
        assert found == wanted, f"{command}: {ended}"
    assert said == table()[state]
