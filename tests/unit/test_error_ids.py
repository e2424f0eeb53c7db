"""Every id of the library is described in the registry as the code uses it, and named by a test."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from typer.core import TyperGroup

from dev.errors_page import PAGE, page
from dev.raised import CLASSES, Uses
from drawdown.cli.main import Drawdown
from drawdown.error_registry import error_entries

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ENTRIES = error_entries()
_NO_IDS = re.compile(
    r"\w+\.(py|sql|yaml)|(sink|spark|window|state)\.(keys|files|jars|authenticate|start|end|partitions|provider)"
)
"""Files, and keys of specs and of Spark, that look like an id in the docs."""


@cache
def uses() -> Uses:
    return Uses()


def test_every_id_in_the_code_can_be_read() -> None:
    assert uses().unread == [], "write the id as a literal, or add its expression to dev/raised.py"
    built = {"metastore.behind", "rebuild.not-compared", "replay.reach", "audit.fail", "spec.unknown-key"}
    assert built <= {use.id for use in uses().found}, "ids are found however they are built"


def test_the_registry_has_the_ids_of_the_code_and_no_others() -> None:
    assert {use.id for use in uses().found} ^ set(ENTRIES) == set(), (
        "describe it in the errors.toml of its room"
    )


def test_an_entry_says_how_its_id_is_raised_and_reported() -> None:
    used: dict[str, set[str]] = {}
    for use in uses().found:
        used.setdefault(use.id, set()).add(use.form)
    said = {
        entry.id: {kind.__name__ for kind in entry.raised} | {*entry.reported} for entry in ENTRIES.values()
    }
    assert {id: said[id] for id in used if said[id] != used[id]} == {}


def test_an_id_is_always_of_one_class() -> None:
    """But for the metastore: its file is this machine's, its server is not."""
    several = {
        id: [kind.__name__ for kind in each.raised] for id, each in ENTRIES.items() if len(each.raised) > 1
    }
    assert several == {"metastore.unreachable": ["MachineError", "SourceError"]}
    assert {name for use in uses().found if (name := use.form) in CLASSES} == set(CLASSES)


def test_an_id_is_described_where_it_is_used() -> None:
    rooms = {id: entry.room for id, entry in ENTRIES.items()}
    near = {use.id for use in uses().found if use.file.is_relative_to(rooms[use.id])}
    assert set(ENTRIES) - near == set(), "an errors.toml has the ids of its own folder"


def test_a_kind_alone_uses_the_ids_that_its_folder_describes() -> None:
    """So that a kind can be removed whole."""
    kinds = {id: each.room for id, each in ENTRIES.items() if re.fullmatch(r"(sources|sinks)/\w+", each.room)}
    elsewhere = [
        use for use in uses().found if use.id in kinds and not use.file.is_relative_to(kinds[use.id])
    ]
    assert kinds
    assert elsewhere == []


def test_meanings_and_remedies_are_sentences_of_their_own() -> None:
    texts = [text for entry in ENTRIES.values() for text in (entry.meaning, entry.remedy)]
    assert [text for text in texts if not re.fullmatch(r"`?[A-Za-z].{20,}[\w)`\"'}\].]\.", text)] == []
    assert [text for text in texts if text.count("`") % 2] == []
    assert [
        text for text, times in Counter(texts).items() if times > 1 and not text.startswith("Nothing")
    ] == []


def test_commands_that_a_remedy_names_exist() -> None:
    texts = [text for entry in ENTRIES.values() for text in (entry.meaning, entry.remedy)]
    said = [words.split() for text in texts for words in re.findall(r"`drawdown ([^`]+)`", text)]
    assert len(said) > 100
    assert [words for words in said if not _is_command(words)] == []


def _is_command(words: list[str]) -> bool:
    """Whether the verbs are commands, and the options theirs."""
    name, *words = words
    place = Drawdown.places.get(name)
    command = place and place.load(name)
    while isinstance(command, TyperGroup):
        command = command.commands.get(words[0])
        words = words[1:]
    options = {name for parameter in getattr(command, "params", ()) for name in parameter.opts}
    return command is not None and {word for word in words if word.startswith("--")} <= options


def test_every_id_is_named_by_a_test() -> None:
    files = [*TESTS.rglob("*.py"), *(TESTS / "fixtures" / "bad_input").glob("*.yaml")]
    said = "\n".join(file.read_text() for file in files if file != Path(__file__))
    said = said.replace("\\.", ".")  # as `match=` has them
    named = set(re.findall(r"(?<![\w.-])[a-z]+\.[a-z0-9-]*[a-z0-9](?![\w-])", said))
    assert set(ENTRIES) - named == set(), "a test has to bring each of these about"


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_ids_that_a_page_names_exist(page: Path) -> None:
    areas = {entry.area for entry in ENTRIES.values()}
    named = re.findall(r"`([a-z]+)\.([a-z0-9]+(?:-[a-z0-9]+)*)`", page.read_text())
    ids = {f"{area}.{what}" for area, what in named if area in areas}
    assert {id for id in ids - set(ENTRIES) if not _NO_IDS.fullmatch(id)} == set()


def test_the_page_is_that_of_the_registry() -> None:
    assert PAGE.read_text() == page(), "python -m dev.errors_page"


def test_the_registry_is_read_without_any_room() -> None:
    shown = (
        "import sys; from drawdown.error_registry import error_entries; error_entries()\n"
        "print(sorted(name for name in sys.modules if name.startswith('drawdown.')))"
    )
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['drawdown.error_registry', 'drawdown.errors', 'drawdown.plan_verdicts']"
