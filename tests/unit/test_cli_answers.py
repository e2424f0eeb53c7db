"""Standard output belongs to a command's answer: what users' code and its children print goes elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from drawdown.cli.command import Command
from drawdown.cli.main import Drawdown
from tests.support.command_line import drawdown

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


FULL = pytest.mark.full


def _ran(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _NOISY, *words], cwd=folder, capture_output=True, text=True, check=True
    )


def test_standard_output_is_one_json_document_whatever_users_code_prints(tmp_path: Path) -> None:
    done = _ran(tmp_path, "noisy", "--as-json")
    assert json.loads(done.stdout) == {
        "drawdown": version("drawdown"),
        "schema": 1,
        "command": "noisy",
        "data": {"as": "json"},
    }
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


def _leaves(command: Any) -> list[Any]:
    inner = getattr(command, "commands", None)
    return [command] if inner is None else [leaf for each in inner.values() for leaf in _leaves(each)]


def test_every_command_is_of_that_class() -> None:
    loaded = [place.load(name) for name, place in Drawdown.places.items()]
    found = [leaf for each in loaded for leaf in _leaves(each)]
    assert len(found) > 30
    assert [each for each in found if not isinstance(each, Command)] == []


def test_every_command_has_a_line_of_help() -> None:
    for name, place in Drawdown.places.items():
        assert place.help.endswith("."), name
        assert len(place.help) < 80, name


@pytest.mark.parametrize(
    ("words", "command", "error_id", "code"),
    [
        (("runs", "nosuch", "--json"), "runs", "cli.no-pipeline", 2),
        (("checkpoint", "show", "--nosuch", "--json"), "checkpoint show", "cli.usage", 2),
        pytest.param(
            ("run", "--json", "broken", "nosuch"), "run", "spec.no-pipeline", 2, marks=pytest.mark.full
        ),
    ],
)
def test_an_error_is_one_json_document_too_with_the_exit_code_it_has(
    tmp_path: Path, words: tuple[str, ...], command: str, error_id: str, code: int
) -> None:
    (tmp_path / "include/pipelines/broken").mkdir(parents=True)
    (tmp_path / "include/pipelines/broken/pipeline.yaml").write_text("{}")
    (tmp_path / "include/project.yaml").write_text("storage_root: storage\nmetastore: sqlite:///m.db\n")
    done = drawdown(tmp_path, *words)
    assert done.returncode == code, done.stderr
    found = json.loads(done.stdout)
    assert (found["command"], found["schema"], found["error"]["id"]) == (command, 1, error_id)
    assert set(found["error"]) == {"id", "what", "where", "do"}


def test_help_imports_no_command(tmp_path: Path) -> None:
    look = """
import sys
from drawdown.cli.main import app
try:
    app(["--help"])
except SystemExit:
    slow = ("drawdown.cli.commands.", "pydantic", "sqlalchemy")
    print([name for name in sys.modules if name.startswith(slow)])
"""
    done = subprocess.run(
        [sys.executable, "-c", look], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_no_command_imports_spark_before_it_works() -> None:
    look = """
import sys
from drawdown.cli.main import Drawdown
for name, place in Drawdown.places.items():
    place.load(name)
print([name for name in ("pyspark", "great_expectations", "airflow", "pyarrow") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
