"""The pages say what is there: commands, targets, links, files and exit codes they name exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from drawdown import errors

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_named_in_backticks_exist(page: Path) -> None:
    named = re.findall(r"`((?:tests|include|docs|jobs|dags)/[\w./-]+)`", page.read_text())
    made_by_users = [name for name in named if "/sales" in name]
    assert [n for n in named if n not in made_by_users and not (ROOT / n).exists()] == []


def test_make_targets_of_the_readme_exist() -> None:
    wanted = set(re.findall(r"\bmake ([a-z-]+)\b", (ROOT / "README.md").read_text()))
    offered = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert wanted
    assert wanted <= offered


def test_commands_of_the_readme_exist() -> None:
    wanted = set(re.findall(r"`?drawdown ([a-z]+)\b", (ROOT / "README.md").read_text()))
    shown = subprocess.run(
        [sys.executable, "-c", "from drawdown.cli.main import main; main()", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert wanted
    assert {name for name in wanted if not re.search(rf"\b{name}\b", shown)} == set()


def test_exit_codes_of_the_readme_are_those_of_the_errors() -> None:
    readme = (ROOT / "README.md").read_text()
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.exit_code for kind in kinds if issubclass(kind, errors.DrawdownError)}
    sentence = re.search(r"Exit codes: (.*?)\.\n", readme, re.DOTALL)
    assert sentence is not None
    assert codes <= {int(code) for code in re.findall(r"\b(\d)\b", sentence[1])}
