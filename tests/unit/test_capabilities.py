"""The list of capabilities watches itself: every row has a test that is always run."""

from __future__ import annotations

import re
from pathlib import Path

from tests.capabilities.listing import MARK, Shown, rows, write_page
from tests.support.collected import TESTS, collected

SHARED_LIST = TESTS.parents[1] / "shared" / "capabilities.md"


def test_every_row_has_a_test_that_is_always_run() -> None:
    shown = {id for each in collected(MARK) if not each.full for id in each.args}
    assert shown == {row.id for row in rows()}


def test_the_list_is_whole() -> None:
    ids = [row.id for row in rows()]
    own = [id for id in ids if id.startswith("OWN-")]
    assert own == [f"OWN-{number:02}" for number in range(1, 14)]
    assert len(set(ids)) == len(ids)
    if SHARED_LIST.exists():
        listed = set(re.findall(r"[A-Z]+-\d\d", SHARED_LIST.read_text()))
        assert set(ids) <= listed
        assert set(own) == {id for id in listed if id.startswith("OWN-")}


def test_the_page_says_passed_only_where_all_tests_of_a_row_did(tmp_path: Path) -> None:
    page = tmp_path / "capabilities.md"
    file = {"tests/unit/test_a.py"}
    shown = {
        "OWN-02": Shown(["passed", "failed", "passed"], 61.6, file),
        "OWN-03": Shown(["passed", "passed"], 2.4, file),
    }
    write_page(shown, page)
    text = page.read_text()
    assert re.search(
        r"^\| OWN-02 \| .* \| 1 of 3 failed \| 62 \| \[test_a\]\(\.\./tests/unit/test_a\.py\) \|$", text, re.M
    )
    assert re.search(r"^\| OWN-03 \| .* \| passed \(2\) \| 2 \|", text, re.M)
    assert re.search(r"^\| OWN-04 \| .* \| not run \|  \|  \|$", text, re.M)
