"""The tier watches itself: every row has a test that runs, and that says something about the output."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.conformance.listing import PAGE, ConformanceTest, Shown, conformance_tests, rows, write_page

SHARED_LIST = Path(__file__).parents[3] / "shared" / "conformance.md"


# What a test reads of the outcome: tables, files, topics, quarantine, what a command printed, a refusal.
OUTPUT = {
    "change_refused",
    "change_allowed",
    "written",
    "delta",
    "table",
    "files",
    "records",
    "quarantined",
    "printed",
    "refused",
    "refused_spec",
    "planned",
    "memory",
    "read",
    "out",
    "outcome",
}


def test_every_row_has_a_test_and_every_test_a_row() -> None:
    carried = {test.id for test in conformance_tests()}
    assert sorted(set(rows()) - carried) == []
    assert sorted(carried - set(rows())) == []


def test_the_list_is_whole() -> None:
    assert len(rows()) == 141
    if SHARED_LIST.exists():
        listed = [line[2:].split(":")[0] for line in SHARED_LIST.read_text().splitlines() if line[:2] == "- "]
        assert [id for id in listed if id not in rows()] == []


@pytest.mark.parametrize("test", list(conformance_tests()), ids=lambda test: test.function.name)
def test_it_runs_and_asserts_something_on_the_output(test: ConformanceTest) -> None:
    source = ast.unparse(test.function)
    assert not re.search(r"pytest\.(mark\.)?(skip|skipif|xfail|importorskip)\b", source)
    called = {
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for node in ast.walk(test.function)
        if isinstance(node, ast.Call)
    }
    asserts = any(isinstance(node, ast.Assert) for node in ast.walk(test.function))
    assert called & OUTPUT, f"{test.function.name} reads no output"
    assert asserts or called & {"refused", "refused_spec"}


def test_the_page_lists_every_row_as_passed() -> None:
    page = PAGE.read_text()
    missing = [id for id in rows() if f"| {id} |" not in page]
    assert missing == []
    listed = [line for line in page.splitlines() if re.match(r"\| [A-Z]+-\d+ \|", line)]
    failed = [line.split(" | ")[0].strip("| ") for line in listed if not line.endswith("| passed |")]
    assert failed == []


def test_running_a_part_of_the_tier_keeps_the_rest_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "conformance.md"
    write_page({"WIN-01": Shown(["passed"], {"hourly": "sources: {}"})}, page)
    write_page({"WIN-02": Shown(["passed", "failed"], {"sliding": "sources: {}"})}, page)
    results = {line.split(" | ")[0][2:]: line.split(" | ")[-1] for line in page.read_text().splitlines()}
    assert (results["WIN-01"], results["WIN-02"], results["WIN-03"]) == (
        "passed |",
        "failed, passed |",
        "not run |",
    )
    assert "WIN-01: hourly" in page.read_text()
