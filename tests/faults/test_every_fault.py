"""The matrix watches itself: every fault has a test that is always run, and the page says what came of it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.faults.listing import SINKS, TESTS, Mark, collected, remembered, rows, write_page

# No test that `make test` runs carries these yet.
NOT_YET: set[str] = set()
SHARED_LIST = TESTS.parents[1] / "shared" / "faults.md"


@pytest.fixture(scope="module")
def marks() -> list[Mark]:
    return collected()


def test_every_fault_has_a_test_that_is_always_run(marks: list[Mark]) -> None:
    shown = {mark.id for mark in marks if not mark.full}
    assert sorted(set(rows()) - shown - NOT_YET) == []


def test_every_mark_names_a_fault_and_a_sink(marks: list[Mark]) -> None:
    assert sorted({mark.id for mark in marks} - set(rows())) == []
    assert sorted({mark.sink for mark in marks} - set(SINKS)) == []


def test_the_list_is_whole() -> None:
    assert list(rows()) == [f"F{number:02}" for number in range(1, 41)]
    if SHARED_LIST.exists():
        listed = re.findall(r"^\| (F\d\d) \| (.+?) \|.*\| (.+?) \|$", SHARED_LIST.read_text(), re.MULTILINE)
        assert [(id, fault) for id, fault, _ in listed] == [(id, row.fault) for id, row in rows().items()]


def test_no_test_of_a_fault_can_be_passed_over(marks: list[Mark]) -> None:
    for file in {mark.file for mark in marks}:
        text = (TESTS.parent / file).read_text()
        assert not re.search(r"pytest\.(mark\.)?(skip|skipif|xfail|importorskip)\b", text), file


def test_the_page_says_passed_only_where_all_tests_of_a_cell_did(tmp_path: Path) -> None:
    page = tmp_path / "faults.md"
    marks = [
        Mark("F01", "delta", "tests/faults/test_a.py::test_one", full=False),
        Mark("F01", "delta", "tests/faults/test_a.py::test_two", full=True),
        Mark("F01", "kafka", "tests/faults/test_b.py::test_three", full=True),
        Mark("F02", "files", "tests/faults/test_b.py::test_four", full=True),
    ]
    store = tmp_path / "results.json"
    store.write_text(json.dumps({marks[2].test: {"outcome": "passed", "day": "2026-01-31"}}))
    remembered({marks[0].test: "failed", marks[1].test: "failed"}, store)
    results = remembered({marks[0].test: "passed"}, store)
    write_page(marks, results, page)
    text = page.read_text()
    assert f"Run on 2026-01-31 and {datetime.now(UTC):%Y-%m-%d}." in text
    assert re.search(r"^\| F01 \| .* \| 1 failed, 1 passed \|  \|  \| passed \|  \|$", text, re.MULTILINE)
    assert re.search(r"^\| F02 \| .* \|  \| not run \|  \|  \|  \|$", text, re.MULTILINE)
    assert "[test_a](../tests/faults/test_a.py), [test_b](../tests/faults/test_b.py)" in text
    assert text.count("none yet") == 38
