"""`drawdown rebuild` as a stranger types it: the commands of docs/rebuild.md, and what they say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.test_commands import refused
from tests.support.command_line import answer, drawdown
from tests.support.rebuilds import NAME, Hourly, event, sums

PAGE = Path(__file__).parents[2] / "docs/rebuild.md"
EVENTS = [event("02T06:10", 1), event("02T06:20", 2, "b"), event("02T07:30", 4), event("02T09:10", 8)]


def commands() -> list[list[str]]:
    [block] = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [shlex.split(line)[1:] for line in block.splitlines()]


@pytest.mark.full
def test_the_commands_of_the_page_do_what_it_says(hourly: Hourly) -> None:
    with (hourly.root / "include/project.yaml").open("a") as settings:
        settings.write("samples: all\n")
    hourly.live_version()
    hourly.arrive_and_run(1, EVENTS)
    old, new = sums(EVENTS, "02T09", by_key=False), sums(EVENTS, "02T09")
    hourly.next_version()
    refused(drawdown(hourly.root, "rebuild", "show", NAME), 3, "rebuild.none")
    start, show, approve, rollback, *again = commands()

    said = drawdown(hourly.root, *start)
    assert said.returncode == 0, said.stderr
    assert "rows: 2 live, 3 rebuilt" in said.stdout
    assert "columns added: k" in said.stdout
    assert 'rebuilt, 1 more: {"hour":' in said.stdout
    shown = answer(drawdown(hourly.root, *show).stdout)
    assert (shown["generation"], shown["state"]) == (2, "shadow")
    assert shown["comparison"]["only_shadow"] == 2

    before = hourly.everything()
    for ending in ("approve", "discard"):
        stale = drawdown(hourly.root, "rebuild", ending, NAME, "--why", "x", "--rebuild", "1-000000000000")
        refused(stale, 3, "rebuild.another")
    assert hourly.everything() == before
    approve = [*approve, "--rebuild", shown["rebuild"]]
    for command, expected in ((approve, new), (rollback, old)):
        said = drawdown(hourly.root, *command)
        assert said.returncode == 0, said.stderr
        assert hourly.rows() == expected
    for command in again:
        said = drawdown(hourly.root, *command)
        assert said.returncode == 0, said.stderr
    assert hourly.rows() == old
    with hourly.metastore() as metastore:
        kinds = [(run.kind, run.origin.get("why")) for run in reversed(metastore.runs(NAME))]
        states = [each.state for each in metastore.generations(NAME)]
    assert states == ["live", "retired", "retired"]
    assert kinds == [
        ("drain", None),
        ("rebuild", None),
        ("rebuild-swap", "x"),
        ("rebuild-discard", "x"),
        ("rebuild-swap", "sums by key"),
        ("rebuild-rollback", "a reader still expects sums of all keys"),
        ("rebuild", None),
        ("rebuild-discard", "the reader stays as it is"),
    ]
