"""The list of rows, the tests that carry their ids, and the page made of both."""

from __future__ import annotations

import ast
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


def write_page(shown: Mapping[str, Shown]) -> None:
    """docs/conformance.md: a table of id, what, test and result; below it the specs that show them."""
    tests = {test.id: test for test in conformance_tests()}
    lines = [_INTRODUCTION]
    group = ""
    for id, what in rows().items():
        if id.split("-")[0] != group:
            group = id.split("-")[0]
            lines += ["", f"## {group}", "", "| id | what | test | result |", "|---|---|---|---|"]
        test = tests.get(id)
        link = f"[{test.function.name}](../tests/conformance/{test.file})" if test else "none yet"
        outcomes = set(shown[id].outcomes) if id in shown else set()
        result = "passed" if outcomes == {"passed"} else ", ".join(sorted(outcomes)) or "not run"
        lines.append(f"| {id} | {what.replace('|', chr(92) + '|')} | {link} | {result} |")
    lines += ["", "## The specs", ""]
    for id in rows():
        specs = shown[id].specs if id in shown else {}
        for name, text in list(specs.items())[:1]:
            lines += [f"<details><summary>{id}: {name}</summary>", "", "```yaml", text.strip(), "```"]
            lines += ["", "</details>", ""]
    PAGE.write_text("\n".join(lines).rstrip() + "\n")
