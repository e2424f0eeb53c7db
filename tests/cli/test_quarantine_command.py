"""`drawdown quarantine` as a stranger types it: every command of docs/quarantine.md, from top to bottom."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.test_commands import refused
from tests.support.command_line import answer, drawdown
from tests.support.sandbox import Sandbox
from tests.support.set_aside import CORRECTED, NAME, fill, write

PAGE = Path(__file__).parents[2] / "docs/quarantine.md"


def commands() -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]


@pytest.mark.full
def test_the_commands_of_the_page_do_what_it_says(sandbox: Sandbox) -> None:
    fill(sandbox)
    write(sandbox, CORRECTED)
    root = sandbox.root
    nobody = drawdown(root, "quarantine", "drop", NAME, "--why", "x")
    assert "--yes" in refused(nobody, 2, "quarantine.unasked")
    said = []
    for command in commands():
        done = drawdown(root, *command)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        said.append(done.stdout)
    listed, counted, broken, of_file, judged, replayed, patched, dropped = said
    assert "4 rows: 4 open" in listed
    assert answer(counted)["rows"]["open"] == 3
    assert "4,2024-01-01T10:27:00Z,3.0" in broken
    assert len(answer(of_file)) == 4
    assert "passed: 2 rows" in judged
    assert "1 stay open (ruled out)" in judged
    assert replayed.startswith("2 rows replayed")
    assert patched.startswith("1 row replayed")
    assert "1 row dropped" in dropped
    total = drawdown(root, "quarantine", "list", NAME, "--json").stdout
    assert answer(total)["rows"] == {"open": 0, "fed": 0, "replaying": 0, "replayed": 3, "dropped": 1}
    with sandbox.metastore() as metastore:
        kinds = {run.kind: run.origin for run in metastore.runs(NAME)}
    assert kinds["quarantine-drop"]["by"] == "ada"
    assert kinds["quarantine-replay"]["why"] in ("", "ids go up to 99 since May")
    again = drawdown(root, "quarantine", "drop", NAME, "--why", "x", "--yes")
    assert "no open rows match" in again.stdout
