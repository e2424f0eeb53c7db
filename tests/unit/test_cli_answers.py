"""Standard output belongs to a command's answer: what users' code and its children print goes elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import typer

from drawdown.cli.command import Command
from drawdown.cli.main import app

_NOISY = """
import atexit, logging, os, subprocess, sys
from drawdown.cli import main
from drawdown.cli.screen import children_write_to, out, print_json, print_text

def noisy(as_json: bool = False):
    from pathlib import Path
    print("by print")
    with children_write_to(Path("log")):
        logging.basicConfig(stream=sys.stdout, level=logging.INFO)
        logging.info("by logging")
        print("while children write")
        sys.__stdout__.write("by the first stream\\n")
        if not as_json:
            out().print("a table")
    os.write(1, b"by its number\\n")
    subprocess.run(["echo", "by a child"])
    atexit.register(print, "at the end")
    print_json({"as": "json"}) if as_json else print_text("a text")

main.app.command()(noisy)
main.main()
"""


def _ran(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _NOISY, *words], cwd=folder, capture_output=True, text=True, check=True
    )


def test_standard_output_is_one_json_document_whatever_users_code_prints(tmp_path: Path) -> None:
    done = _ran(tmp_path, "noisy", "--as-json")
    assert json.loads(done.stdout) == {"as": "json"}
    for said in (
        "by print",
        "by logging",
        "while children write",
        "by its number",
        "by a child",
        "at the end",
    ):
        assert said in done.stderr, said


def test_a_table_and_a_text_are_alone_there_too(tmp_path: Path) -> None:
    assert _ran(tmp_path, "noisy").stdout == "a table\na text"


def test_help_is_an_answer(tmp_path: Path) -> None:
    done = _ran(tmp_path, "noisy", "--help")
    assert "--as-json" in done.stdout
    assert done.stderr == ""


def test_every_command_is_of_that_class() -> None:
    def leaves(command: object) -> list[object]:
        inner = getattr(command, "commands", None)
        return [command] if inner is None else [leaf for each in inner.values() for leaf in leaves(each)]

    found = leaves(typer.main.get_command(app))
    assert len(found) > 30
    assert [each for each in found if not isinstance(each, Command)] == []
