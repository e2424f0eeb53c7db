"""The list of rows, the tests that carry their ids, and the page made of both."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "conformance.md"

_INTRODUCTION = """\
# Conformance

Made by `make conformance` from `tests/conformance/rows.yaml` and the results of the tests in
`tests/conformance`; do not edit. Each row is one thing that Spark's Structured Streaming documents describe.
Its test drains a pipeline folder twice or more through the same code as the Airflow job, with new data in
between, and compares the output with an oracle computed another way; a row that is refused is shown to leave
checkpoint, sink and metastore untouched.
"""


@dataclass(frozen=True)
class ConformanceTest:
    """A test function that carries the id of a row."""

    id: str
    file: str
    function: ast.FunctionDef


@dataclass
class Shown:
    """What a test run showed of one row: every outcome, and the spec of each pipeline it wrote."""

    outcomes: list[str] = field(default_factory=list)
    specs: dict[str, str] = field(default_factory=dict)


def rows() -> dict[str, str]:
    """Row id to what it says, in the order of the list."""
    listed: dict[str, str] = yaml.safe_load((HERE / "rows.yaml").read_text())
    return listed


def conformance_tests() -> Iterator[ConformanceTest]:
    """Every test function under tests/conformance with a conformance mark, read without running anything."""
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.conformance":
                        for argument in mark.args:
                            yield ConformanceTest(ast.literal_eval(argument), path.name, node)


def write_page(shown: Mapping[str, Shown], page: Path = PAGE) -> None:
    """docs/conformance.md: a table of id, what, test and result; below it the specs that show them.

    Rows that were not run this time stay as the page has them, so that a part of the tier can be run again.
    """
    before = page.read_text() if page.exists() else ""
    tests = {test.id: test for test in conformance_tests()}
    lines, specs = [_INTRODUCTION.rstrip()], ["", "## The specs", ""]
    group = ""
    for id, what in rows().items():
        if id.split("-")[0] != group:
            group = id.split("-")[0]
            lines += ["", f"## {group}", "", "| id | what | test | result |", "|---|---|---|---|"]
        test = tests.get(id)
        link = f"[{test.function.name}](../tests/conformance/{test.file})" if test else "none yet"
        result = _result(shown[id]) if id in shown else _result_before(before, id)
        lines.append(f"| {id} | {what.replace('|', chr(92) + '|')} | {link} | {result} |")
        specs += _spec(id, shown[id]) if id in shown else _spec_before(before, id)
    page.write_text("\n".join([*lines, *specs]).rstrip() + "\n")


def _result(shown: Shown) -> str:
    return "passed" if set(shown.outcomes) == {"passed"} else ", ".join(sorted(set(shown.outcomes)))


def _result_before(page: str, id: str) -> str:
    found = re.search(rf"^\| {id} \|.*\| (.+) \|$", page, re.MULTILINE)
    return found[1] if found else "not run"


def _spec(id: str, shown: Shown) -> list[str]:
    """The spec of the first pipeline that the test wrote."""
    for name, text in shown.specs.items():
        head = f"<details><summary>{id}: {name}</summary>"
        return [head, "", "```yaml", text.strip(), "```", "", "</details>", ""]
    return []


def _spec_before(page: str, id: str) -> list[str]:
    found = re.search(rf"^<details><summary>{id}: .*?^</details>\n", page, re.MULTILINE | re.DOTALL)
    return [*found[0].splitlines(), ""] if found else []
