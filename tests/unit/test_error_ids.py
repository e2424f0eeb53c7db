"""Every error id of the library is named by a test that raises it, and stands on docs/errors.md."""

from __future__ import annotations

import re
from pathlib import Path

from dev.errors_page import PAGE, page, raised

TESTS = Path(__file__).parents[1]


def test_every_id_is_named_by_a_test() -> None:
    ids = {each.id for each in raised()}
    assert {"metastore.behind", "rebuild.not-compared", "replay.reach", "query.failed"} <= ids, (
        "ids are found however they are built"
    )
    said = "\n".join(file.read_text() for file in TESTS.rglob("*.py") if file != Path(__file__))
    said = said.replace("\\.", ".")  # as `match=` has them
    named = set(re.findall(r"(?<![\w.-])[a-z]+\.[a-z0-9-]*[a-z0-9](?![\w-])", said))
    assert ids - named == set(), "a test has to bring each of these about"


def test_the_page_is_that_of_the_code() -> None:
    assert PAGE.read_text() == page(), "python -m dev.errors_page"


def test_an_id_is_always_of_one_kind() -> None:
    """But for the metastore: its file is this machine's, its server is not."""
    kinds: dict[str, set[str]] = {}
    for each in raised():
        kinds.setdefault(each.id, set()).add(each.kind)
    assert {id: sorted(found) for id, found in kinds.items() if len(found) > 1} == {
        "metastore.unreachable": ["MachineError", "SourceError"]
    }
