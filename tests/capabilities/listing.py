"""The list of capabilities, what became of the tests that carry their ids, and the page made of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "capabilities.md"
MARK = "capability"

_INTRODUCTION = """\
# Capabilities

Made by `make capabilities` from `tests/capabilities/rows.yaml` and the results of the tests that carry the
ids; do not edit. Each row is something that Drawdown does beyond Spark's guide, shown against the real things
that it names. Seconds are those of all tests of the row, on two cores.
"""


@dataclass(frozen=True)
class Capability:
    """A row: what is done, and what its tests run."""

    id: str
    says: str
    runs: str


@dataclass
class Shown:
    """What became of the tests of one row; `seconds` with their fixtures."""

    outcomes: list[str] = field(default_factory=list)
    seconds: float = 0
    files: set[str] = field(default_factory=set)


def rows() -> list[Capability]:
    """In the order of the list."""
    listed = yaml.safe_load((HERE / "rows.yaml").read_text())
    return [Capability(row["id"], row["says"], row["with"]) for row in listed]


def ids_of(item: pytest.Item) -> list[str]:
    return [id for mark in item.iter_markers(MARK) for id in mark.args]


def note(report: pytest.TestReport, shown: dict[str, Shown]) -> None:
    """Add what a report says to the rows of its test."""
    for id in [str(value) for key, value in report.user_properties if key == MARK]:
        of = shown.setdefault(id, Shown())
        of.seconds += report.duration
        of.files.add(report.nodeid.split("::")[0])
        if report.when == "call" or report.outcome != "passed":
            of.outcomes.append(report.outcome)


def write_page(shown: Mapping[str, Shown], page: Path = PAGE) -> None:
    """docs/capabilities.md: what is done, what was run, what came of it."""
    lines = [_INTRODUCTION, f"Run on {datetime.now(UTC):%Y-%m-%d}.", ""]
    lines += ["| id | what | ran | result | seconds | tests |", "|---|---|---|---|---|---|"]
    for row in rows():
        of = shown.get(row.id, Shown())
        tests = ", ".join(f"[{Path(file).stem}](../{file})" for file in sorted(of.files))
        seconds = f"{of.seconds:.0f}" if of.outcomes else ""
        lines.append(f"| {row.id} | {row.says} | {row.runs} | {_result(of)} | {seconds} | {tests} |")
    page.write_text("\n".join(lines) + "\n")


def _result(shown: Shown) -> str:
    """`passed` only when every test of the row has."""
    failed = len(shown.outcomes) - shown.outcomes.count("passed")
    if not shown.outcomes or not failed:
        return f"passed ({len(shown.outcomes)})" if shown.outcomes else "not run"
    return f"{failed} of {len(shown.outcomes)} failed"
