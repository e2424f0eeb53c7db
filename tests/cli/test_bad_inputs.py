"""A few hundred bad inputs, typed as commands: each ends in one error with its id, place and way out.

The inputs are data: `tests/fixtures/bad_input/`, a file for each kind. Each goes through the whole command in
this process, from the words that are typed to the exit code.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from drawdown.cli import main
from drawdown.error_registry import error_entries

INPUTS = Path(__file__).parents[1] / "fixtures" / "bad_input"
TABLES: Mapping[str, dict[str, Any]] = {
    file.stem: yaml.safe_load(file.read_text()) for file in sorted(INPUTS.glob("*.yaml"))
}
CASES = [
    pytest.param(table, case, id=f"{name}-{number}")
    for name, table in TABLES.items()
    for number, case in enumerate(table["cases"], start=1)
]


@pytest.fixture(autouse=True)
def _in_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRAWDOWN_PROJECT", raising=False)
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # `main` leaves standard error in its place


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def changed(table: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, str]:
    """The files of a case: those of its table, one of them changed."""
    files = {**table.get("folder", {}), **case.get("files", {})}
    if "whole" in case:
        files[table["file"]] = case["whole"]
    if "old" in case:
        right = files[table["file"]]
        assert case["old"] in right
        files[table["file"]] = right.replace(case["old"], case["new"], 1)
    return files


def type_in(monkeypatch: pytest.MonkeyPatch, words: str) -> int:
    """The exit code of a command that is typed."""
    monkeypatch.setattr(sys, "argv", ["drawdown", *shlex.split(words)])
    with pytest.raises(SystemExit) as ended:
        main.main()
    code = ended.value.code
    assert code is None or isinstance(code, int)
    return code or 0


def errors_in(said: str) -> Iterator[str]:
    yield from re.findall(r"^✗ ([a-z.-]+)  ", said, re.MULTILINE)


@pytest.mark.parametrize(
    "table", [pytest.param(table, id=name) for name, table in TABLES.items() if "file" in table]
)
def test_the_folder_that_is_made_wrong_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: dict[str, Any]
) -> None:
    write(tmp_path, table["folder"])
    assert type_in(monkeypatch, "validate") == 0


@pytest.mark.parametrize(("table", "case"), CASES)
def test_a_bad_input_is_one_error_with_its_place_and_the_way_out(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    table: dict[str, Any],
    case: dict[str, Any],
) -> None:
    write(tmp_path, changed(table, case))
    code = type_in(monkeypatch, case.get("run", "validate"))
    answered, said = capfd.readouterr()
    entry = error_entries()[case["id"]]
    assert list(errors_in(said)) == [case["id"]], said
    assert (code,) == entry.exit_codes, said
    assert not re.search(r"Traceback|cli\.unexpected|_dd_|pydantic|<class ", answered + said)
    if "line" in case:
        assert f"  where: {table['file']}:{case['line']}\n" in said
    assert re.search(r"^  do:    \S", said, re.MULTILINE), said
    assert case.get("says", "") in said, said
    assert case.get("do", "") in said.partition("  do:")[2], said
    assert case.get("never", "\0") not in answered + said
    if "run" not in case:
        assert not list(tmp_path.rglob("*.db")), "validate asks no metastore"


def test_there_are_some_hundreds() -> None:
    assert len(CASES) >= 250
